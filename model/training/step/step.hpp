// The step, as values: the input of every executor. In: nothing but the values of a scenario, a model, a topology.
// Out: Step, a training step in compact form: blocks costed once, and the numbers by which they are repeated.
//
// A rank class is a set of ranks that behave alike (rank_classes.hpp); a step describes rank classes, not ranks. A
// chunk is a rank class's part of the model. A pass is a chunk's work for one micro-batch (PassKind). A PassCost is
// what a pass, or a part of one, takes. A transfer is what moves, numbered; a chunk names the transfers that its passes
// begin or wait for.
//
// The modules of model/training, in the order of a prediction: transfers/ (what is sent), pricing/ (what layers take;
// makes the step), graph/ (the step as tasks), outcome/ (what the tasks' moments mean).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/collectives/collective.hpp"
#include "model/cost/loader.hpp"
#include "model/graph/recipe.hpp"
#include "model/graph/task_graph.hpp"
#include "model/hardware/topology.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/parallelism/stages.hpp"
#include "model/scenario/scenario.hpp"
#include "model/training/step/rank_classes.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// Work of one rank on its compute stream, by what it is spent on.
struct TimeBreakdown : Inside {
  Seconds compute;

  /// Time that stops the stream between dependent kernels; copies of offloading are no transfers of the step.
  [[nodiscard]] Seconds communication() const { return exposed + exposed_copies; }
  [[nodiscard]] Seconds total() const { return compute + communication() + host; }
  TimeBreakdown& operator+=(const TimeBreakdown& other) {
    Inside::operator+=(other);
    compute += other.compute;
    return *this;
  }
  friend TimeBreakdown operator*(const TimeBreakdown& s, double n) { return {Inside(s) * n, s.compute * n}; }
};

/// A kind of collective inside layers, and its count.
struct InsideCall {
  std::string_view name;  ///< "expert dispatch"
  int transfer = -1;      ///< into Step::transfers
  int count = 1;
};

/// The collectives inside a layer's pass, as indices into Step::transfers.
struct PassCalls {
  /// A collective of tensor ranks behind a product.
  struct Behind {
    int transfer = -1;
    double share = 0.0;  ///< of the pass's kernels, that hide it
  };
  std::vector<int> beside = {};      ///< one after the other, from the pass's beginning, beside its first kernels
  std::vector<int> between = {};     ///< among the kernels after these, which wait for them
  std::vector<Behind> behind = {};   ///< one after the other, each beside its product
  std::vector<int> exchanges = {};   ///< expert all-to-alls that another pass's kernels hide, as long as this one's
  double hiding = 0.0;               ///< share of the pass's kernels that hide those `beside`
  std::vector<InsideCall> all = {};  ///< of the four lists, by what they are
  /// Share of the kernels that hide nothing `behind` products.
  [[nodiscard]] double share_free() const {
    double free = 1.0;
    for (const Behind& call : behind) free -= call.share;
    return free;
  }
  [[nodiscard]] double share_beside() const { return beside.empty() ? 0.0 : std::min(hiding, share_free()); }
  [[nodiscard]] double share_of_exchanges() const { return share_free() - share_beside(); }
};
struct LayerCalls {
  PassCalls forward, recompute, backward;

  /// Calls visit(transfer) for each, in each list that it stands in.
  void visit_transfers(const auto& visit) {
    for (PassCalls* pass : {&forward, &recompute, &backward}) {
      std::ranges::for_each(pass->beside, visit);
      std::ranges::for_each(pass->between, visit);
      std::ranges::for_each(pass->exchanges, visit);
      for (PassCalls::Behind& call : pass->behind) visit(call.transfer);
      for (InsideCall& call : pass->all) visit(call.transfer);
    }
  }
};

/// A pass, or a part of one. It is one task, its collectives' time included; where these may meet other traffic it is
/// cut into slices (pass_slices.hpp).
struct PassCost {
  /// A layer's pass between two moments of it (0 to 1), `count` times: what runs again, then its own kernels.
  struct Part {
    Seconds again, own;
    std::shared_ptr<const LayerCalls> calls;
    bool backward = false;
    double from = 0.0, to = 1.0;
    int count = 1;
  };

  TimeBreakdown time;
  std::vector<Part> parts = {};
  RecipePointer recipe = nullptr;  ///< of its kernels, where recipes are kept
};

/// Gradients that become ready together and are synchronised by one collective, or by several after each other where
/// compression asks for it. Its kernels run beside the backward pass on a stream of their own; what that takes from the
/// backward pass is part of the later buckets' `backward`.
struct GradientBucket {
  /// Kernels, then a transfer that waits for them.
  struct Stage {
    Seconds kernels;
    int transfer = -1;               ///< into Step::transfers
    RecipePointer recipe = nullptr;  ///< of the kernels
  };

  PassCost backward;  ///< after the previous bucket was ready until this one is
  Bytes gradients;
  std::vector<Stage> stages;  ///< one after the other; none where nobody else holds these parameters
  Seconds after;              ///< kernels that restore the gradients
  RecipePointer after_recipe = nullptr;
};

/// Updated weights that come back together (ZeRO-1 and 2).
struct WeightGather {
  std::vector<int> transfers;  ///< one after the other, into Step::transfers
  /// A chunk's first forward pass, from the first layer that needs them to the first one that waits for the next.
  PassCost forward;
};

/// A group of layers whose weights are gathered and whose gradients are scattered together (ZeRO-3, FSDP).
struct ShardedUnit {
  PassCost forward, backward;
  int gather = -1;           ///< weights, before the forward pass
  int gather_backward = -1;  ///< weights again, before the backward pass; none where they were kept
  int scatter = -1;          ///< gradients, after the backward pass
  int reduce = -1;           ///< of the scattered gradients, among ranks that hold the same shard
};

struct Step {
  /// A collective or transfer that several tasks refer to. Index −1 in the structs below means "none".
  struct Transfer {
    /// A collective that the groups of one class run side by side.
    struct Part {
      LoweredCollective lowered;
      Seconds uncontended;            ///< while no other part moves
      std::vector<int> rank_classes;  ///< with participating ranks, ascending
      LinkShare links = {};           ///< with the others of its groups

      /// Beside all of them.
      [[nodiscard]] Seconds longest() const { return links.shares ? links.together : uncontended; }
    };

    std::string name;  ///< as it appears in the result's communication table, e.g. "gradient all-reduce"
    std::vector<Part> parts;
    RecipePointer recipe = nullptr;
    double slowdown = 0.0;  ///< of kernels beside it, as a share of the time that both run
    GroupKind kind = GroupKind::gradients;
    Bytes sent = {};  ///< by each rank, as bus bandwidths count: of payload, by the best of algorithms
  };

  /// The layers of one stage that belong to one model chunk; work is for one micro-batch.
  struct Chunk {
    /// Backward passes with recomputation; those in two parts or in pairs only where the schedule has them.
    PerPass<PassCost> passes;
    /// In order of readiness; their `backward` add up to the backward pass, or to that of weights alone where the
    /// step's last pass of the chunk is one.
    std::vector<GradientBucket> buckets;
    std::vector<ShardedUnit> units;     ///< only with ZeRO-3
    std::vector<WeightGather> gathers;  ///< in the order of its layers; only with ZeRO-1 and 2
    std::vector<InsideCall> inside;     ///< of its passes there and back
    Seconds hidden_exchanges;           ///< by which both passes are shorter as others hide expert all-to-alls

    [[nodiscard]] const TimeBreakdown& time(PassKind kind) const { return passes[kind].time; }
    void visit_pass_costs(const auto& visit) {
      std::ranges::for_each(passes, visit);
      for (GradientBucket& bucket : buckets) visit(bucket.backward);
      for (WeightGather& gather : gathers) visit(gather.forward);
      for (ShardedUnit& unit : units) {
        visit(unit.forward);
        visit(unit.backward);
      }
    }
    /// Calls visit(transfer) for each but those inside layers.
    void visit_transfers(const auto& visit) {
      for (GradientBucket& bucket : buckets) {
        for (GradientBucket::Stage& stage : bucket.stages) visit(stage.transfer);
      }
      for (WeightGather& gather : gathers) std::ranges::for_each(gather.transfers, visit);
      for (ShardedUnit& unit : units) {
        for (int* transfer : {&unit.gather, &unit.gather_backward, &unit.scatter, &unit.reduce}) visit(*transfer);
      }
    }
    /// A micro-batch's way there and back.
    [[nodiscard]] Seconds both_ways() const {
      return time(PassKind::forward).total() + time(PassKind::backward).total();
    }
  };

  /// A class of ranks of one stage that behave alike (rank_classes.hpp): what one of them does.
  struct RankClass {
    /// Which passes are cut into slices: none, those at the step's ends (until updated weights are back where these
    /// come beside forward passes, and from the first that makes gradients of the last micro-batch), all.
    enum class SplitMode { none, ends, all };

    int stage = 0;
    int first_rank = 0, ranks = 1;
    int missing_micro_batches = 0;  ///< micro-batches that it does not have: the first of the step (batch_split.hpp)
    SplitMode split = SplitMode::none;
    /// Rank classes whose ranks have collectives inside layers with this one's, itself among them; empty where it is
    /// alone. As the same work takes them equally long, or their passes are cut, they do a pass together: it begins
    /// when all can.
    std::vector<int> lockstep_classes;
    std::vector<Chunk> chunks;
    TimeBreakdown optimizer;  ///< exposed: exchanges that passes count as hidden and that have nothing to hide behind
    double saved_parameters = 0.0;  ///< in a rank's part of a checkpoint
    RecipePointer optimizer_recipe = nullptr;
  };

  std::vector<RankClass> rank_classes;  ///< by stage
  SharedVector<int> class_of_rank;      ///< by GPU of the cluster, or of `few_nodes`; -1: not used
  /// If a few nodes stand for the whole cluster: those on which transfers move.
  std::optional<Topology> few_nodes;
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int interleave = 1;
  int micro_batches = 1;
  bool blocking_messages = false;      ///< between stages: the sender's next pass waits for their arrival
  bool overlap = true;                 ///< gradients are synchronised beside the backward pass; else after it
  bool sync_each_micro_batch = false;  ///< every micro-batch's gradients are; not where backward passes have two parts
  bool gather_overlap = false;         ///< the step before leaves its gathers to this one's first forward passes
  std::vector<Transfer> transfers;
  /// By chunk and stage (p2p_index()): what the chunk's forward pass sends on, and what comes back. None where the next
  /// chunk is on the same stage.
  std::vector<int> activations, activation_gradients;
  std::optional<Transfer::Part> checkpoint;  ///< state copied to the hosts beside the passes, before the optimizer
  Seconds slowest_replica;  ///< by which the slowest replica's passes outlast these, which are mean ones
  Seconds gradient_norm;    ///< all ranks wait for each other before the optimizer
  RecipePointer norm_recipe = nullptr;
  Seconds once_per_step;                 ///< host work between steps
  Seconds loader_interval;               ///< time in which the input pipeline delivers one step's samples
  Seconds loader_serial;                 ///< of a step on its own samples: blocking copies, decoding
  Seconds loader_device;                 ///< part of `loader_serial` that is work of the device
  std::optional<LoaderPipeline> loader;  ///< if the scenario has one; of the slowest kind of node
  int loader_node = 0;                   ///< one of these
  LoweredCollective loader_copy;         ///< of a batch to every GPU of a machine; no phases: a fixed time
  double parameters_per_gpu = 0.0;       ///< of the stage with the most
  Flops model_flops_per_gpu;             ///< of the mathematics: forward and backward, no recomputation

  [[nodiscard]] int stage_count() const { return rank_classes.empty() ? 0 : rank_classes.back().stage + 1; }
  [[nodiscard]] std::size_t p2p_index(int stage, int chunk) const {
    return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(stage_count()) + static_cast<std::size_t>(stage);
  }
  [[nodiscard]] ChunkPlacement placement() const { return {schedule, stage_count(), interleave}; }
  [[nodiscard]] std::vector<PipelinePass> order_of(int stage) const {
    return pipeline_order(schedule, stage_count(), stage, interleave, micro_batches);
  }
};

}  // namespace foretrain
