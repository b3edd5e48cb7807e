#include "model/training/pricing/build_step.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/training/pricing/chunk_builder.hpp"
#include "model/training/pricing/train_loader.hpp"
#include "model/training/transfers/transfer_table.hpp"

namespace foretrain {

namespace {

/// Replicas with more or longer samples finish later, and the others wait for them: once a step, or under ZeRO-3 at
/// every layer, so that each micro-batch takes as long as its slowest.
Seconds waiting_for_slowest(const Step& step, const Plan& plan, const Model& model) {
  const int together = plan.zero == 3 || step.sync_each_micro_batch ? 1 : step.micro_batches;
  const double excess = slowest_replica(model.variation, together, plan.data) - 1.0;
  Seconds longest;
  for (const Step::RankClass& rank_class : step.rank_classes) {
    Seconds passes;
    for (const Step::Chunk& chunk : rank_class.chunks) passes += chunk.both_ways();
    longest = std::max(longest, passes);
  }
  const double ends = step.schedule == PipelineSchedule::dualpipe ? 2.0 : 1.0;  // at which micro-batches enter
  return longest * (excess * step.micro_batches / ends);
}

/// Expert all-to-alls that blocks count as hidden behind another micro-batch's passes although there is none. That is
/// so in the first forward pass down the pipeline, in the last backward pass up, and in all chunks of a single
/// micro-batch.
Seconds exchanges_alone(const Step& step, const Step::RankClass& rank_class, const Plan& plan) {
  Seconds longest, all;
  for (const Step::Chunk& chunk : rank_class.chunks) {
    longest = std::max(longest, chunk.hidden_exchanges);
    all += chunk.hidden_exchanges;
  }
  return (step.micro_batches > 1 ? longest : all) * static_cast<double>(plan.pipeline);
}

/// One rank class after the other: chunks and their synchronisation, the optimizer, what leaves for the next stage.
class RankClassBuilder {
 public:
  RankClassBuilder(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
                   Step& step, Recipes recipes, Extent extent)
      : plan_(scenario.plan),
        train_(train),
        topology_(topology),
        step_(step),
        transfers_(scenario, topology, step.transfers, extent) {
    if (scenario.cluster.groups.empty()) kinds_.emplace_back(scenario, model, *this, recipes);
    for (std::size_t group = 0; group < scenario.cluster.groups.size(); ++group) {
      Scenario& alike = alike_.emplace_back(scenario);
      alike.cluster = scenario.cluster.as_group(static_cast<int>(group));
      adapt_to_processor(alike.calibration, alike.cluster);
      kinds_.emplace_back(alike, model, *this, recipes);
    }
  }

  void build(const RankClasses& classes) {
    step_.rank_classes.clear();
    step_.class_of_rank = classes.class_of_rank;
    step_.activations.clear();
    step_.activation_gradients.clear();
    for (const RankClasses::RankClass& of_layout : classes.rank_classes) {
      const RankClasses::RankClass rank_class = of_all(of_layout);
      if (&classes == &transfers_.whole() && rank_class.stage > 0 && repeat(rank_class)) continue;
      add({rank_class.stage, static_cast<int>(step_.rank_classes.size()), rank_class.speed}, rank_class);
    }
    for (int chunk = 0; chunk < kinds_.front().chunks.placement().chunks(); ++chunk) {
      for (int stage = 0; stage < plan_.pipeline; ++stage) add_pipeline_p2p(stage, chunk);
    }
    const std::vector<std::vector<int>> lockstep_classes = transfers_.lockstep_classes(step_.rank_classes.size());
    for (std::size_t rank_class = 0; rank_class < lockstep_classes.size(); ++rank_class)
      step_.rank_classes[rank_class].lockstep_classes = lockstep_classes[rank_class];
  }

  /// Cuts passes as `cuts` say by stage. Where what rank classes do together takes them unequally long, each collective
  /// inside their layers must be seen.
  void cut(std::vector<Step::RankClass::SplitMode> cuts, InsideLayers inside) {
    for (const Step::RankClass& rank_class : step_.rank_classes) {
      const bool unequal = !rank_class.lockstep_classes.empty() &&
                           !equally_long(rank_class, step_.rank_classes[at_index(rank_class.lockstep_classes.front())]);
      if (unequal || inside == InsideLayers::seen) cuts[at_index(rank_class.stage)] = Step::RankClass::SplitMode::all;
    }
    for (Step::RankClass& rank_class : step_.rank_classes) rank_class.split = cuts[at_index(rank_class.stage)];
  }
  [[nodiscard]] TransferTable& transfers() { return transfers_; }

 private:
  /// Prices of layers and their synchronisation on one kind of node.
  struct Kind {
    Kind(const Scenario& of, const Model& model, RankClassBuilder& builder, Recipes recipes)
        : scenario(of), chunks(of, builder.train_, model, builder.topology_, recipes, builder.transfers_) {}
    const Scenario& scenario;  ///< all nodes like those
    ChunkBuilder chunks;
  };
  [[nodiscard]] Kind& kind_of(const RankClasses::RankClass& rank_class) {
    return kinds_[at_index(topology_.group_of_node(topology_.node_of(rank_class.first_rank)))];
  }

  /// The ranks of the whole cluster that a class of the transfers' layout stands for.
  [[nodiscard]] RankClasses::RankClass of_all(RankClasses::RankClass rank_class) const {
    const int data = transfers_.layout().data(), replica = transfers_.layout().ranks_per_stage() / data;
    rank_class.first_rank += rank_class.stage * (plan_.data - data) * replica;
    rank_class.ranks = static_cast<int>(std::int64_t{rank_class.ranks} * plan_.data / data);
    return rank_class;
  }

  static bool equally_long(const Step::RankClass& a, const Step::RankClass& b) {
    const auto same = [](Seconds x, Seconds y) { return std::abs((x - y).value()) <= 1e-12 * y.value(); };
    for (std::size_t k = 0; k < a.chunks.size(); ++k) {
      for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
        if (!same(a.chunks[k].time(kind).total(), b.chunks[k].time(kind).total())) return false;
      }
    }
    return true;
  }

  /// Adds the rank class as that of the stage before with its transfers among these ranks, where layers, devices and
  /// groups are alike; false where they are not.
  bool repeat(const RankClasses::RankClass& ranks) {
    const bool alike = kinds_.size() == 1 && !splits_backward(plan_.schedule) &&
                       kinds_.front().chunks.alike(ranks.stage - 1, ranks.stage);
    if (!alike) return false;
    Step::RankClass rank_class = step_.rank_classes.back();
    bool all_repeated = true;
    const auto repeat = [&](int& transfer) {
      if (transfer < 0) return;
      transfer = transfers_.repeated(transfer, ranks.stage);
      all_repeated = all_repeated && transfer >= 0;
    };
    std::map<const LayerCalls*, std::shared_ptr<const LayerCalls>> repeated;
    const auto repeat_calls = [&](PassCost& pass_cost) {
      for (PassCost::Part& part : pass_cost.parts) {
        std::shared_ptr<const LayerCalls>& known = repeated[part.calls.get()];
        if (known == nullptr) {
          auto calls = std::make_shared<LayerCalls>(*part.calls);
          calls->visit_transfers(repeat);
          known = std::move(calls);
        }
        part.calls = known;
      }
    };
    for (Step::Chunk& chunk : rank_class.chunks) {
      chunk.visit_transfers(repeat);
      chunk.visit_pass_costs(repeat_calls);
      for (InsideCall& call : chunk.inside) repeat(call.transfer);
    }
    if (!all_repeated) return false;
    rank_class.stage = ranks.stage;
    rank_class.first_rank = ranks.first_rank;
    rank_class.ranks = ranks.ranks;
    step_.rank_classes.push_back(std::move(rank_class));
    return true;
  }

  void add(const GradientSync::Place& place, const RankClasses::RankClass& ranks) {
    Kind& kind = kind_of(ranks);
    Step::RankClass& rank_class = step_.rank_classes.emplace_back();
    rank_class.stage = ranks.stage;
    rank_class.first_rank = ranks.first_rank;
    rank_class.ranks = ranks.ranks;
    StageLayers layers;
    rank_class.chunks = kind.chunks.chunks(place, place.stage, step_.micro_batches, layers);
    step_.parameters_per_gpu = std::max(step_.parameters_per_gpu, layers.parameters);
    const double copies = replicas_of(plan_);
    rank_class.saved_parameters =
        (layers.parameters - layers.in_experts) / copies + layers.in_experts / (copies / plan_.expert);
    kind.chunks.set_optimizer(place.speed, layers, rank_class);
    rank_class.optimizer.exposed = exchanges_alone(step_, rank_class, plan_);
  }

  void add_pipeline_p2p(int stage, int chunk) {
    int there = -1, back = -1;
    const ChunkPlacement& placement = kinds_.front().chunks.placement();
    const std::optional<ChunkPlacement::Place> next = placement.next(stage, chunk);
    if (next && next->stage != stage) {
      const Bytes activation = kinds_.front().chunks.output(stage, chunk);
      const bool reversed = placement.reversed(chunk);
      const int boundary = reversed ? next->stage : stage;
      there = transfers_.pipeline_p2p(boundary, reversed, activation, train_.message_overhead);
      back = transfers_.pipeline_p2p(boundary, !reversed, activation, train_.message_overhead);
    }
    step_.activations.push_back(there);
    step_.activation_gradients.push_back(back);
  }

  const Plan& plan_;
  const TrainWorkload& train_;
  const Topology& topology_;
  Step& step_;
  TransferTable transfers_;
  std::deque<Scenario> alike_;
  std::deque<Kind> kinds_;  ///< by group of the cluster's nodes
};

std::vector<double> speeds_of(const Scenario& scenario, const Topology& topology, std::size_t ranks) {
  std::vector<double> speeds(ranks, 1.0);
  for (const Fault& fault : scenario.cluster.faults) {
    if (fault.gpu < 0) continue;
    const int rank = topology.first_gpu(fault.node) + fault.gpu;
    if (std::cmp_less(rank, speeds.size())) speeds[at_index(rank)] *= fault.share;
  }
  return speeds;
}

/// Divides the ranks of whole stages, whose transfers are known, into classes, and finds contention.
Division divide(TransferTable& transfers, const Scenario& scenario, const Topology& topology, Symmetry symmetry) {
  const bool even_speeds =
      std::ranges::all_of(scenario.cluster.faults, [](const Fault& f) { return f.gpu < 0 || f.share == 1.0; });
  std::optional<DivisionKey> key;
  if (even_speeds && symmetry != Symmetry::ignored) key = transfers.division_key();
  if (key) {
    if (const auto known = session().find(*key)) {
      if (known->classes) transfers.divide(*known->classes);
      return *known;
    }
  }
  const RankClasses& whole = transfers.whole();
  Division division;
  division.classes =
      classify(transfers.grouped(), whole.class_of_rank, speeds_of(scenario, topology, whole.class_of_rank.size()),
               topology, scenario.background, symmetry == Symmetry::ignored ? symmetry : Symmetry::used);
  transfers.divide(*division.classes);
  division.cuts = transfers.meetings();
  const bool same =
      division.classes->rank_classes.size() == whole.rank_classes.size() && even_speeds && !transfers.divided();
  if (same) division.classes.reset();
  if (key) session().keep(std::move(*key), division);
  return division;
}

/// Rank classes of whole stages first: they say which transfers there are, and these, which ranks are alike and what
/// meets.
void build_classes(const Scenario& scenario, Symmetry symmetry, InsideLayers inside, RankClassBuilder& builder) {
  builder.build(builder.transfers().whole());
  if (symmetry == Symmetry::of_stages && !builder.transfers().divided()) return;
  const Division division = divide(builder.transfers(), scenario, builder.transfers().topology(), symmetry);
  if (division.classes) builder.build(*division.classes);
  builder.cut(division.cuts, inside);
}

}  // namespace

Step build_step(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
                Recipes recipes, InsideLayers inside, Symmetry symmetry) {
  const Plan& plan = scenario.plan;
  Step step;
  step.schedule = plan.schedule;
  step.interleave = plan.interleave;
  step.micro_batches = micro_batches(train, plan);
  step.blocking_messages = plan.pipeline_messages == PipelineMessages::blocking;
  step.overlap = plan.sync.overlap;
  step.gather_overlap = plan.sync.gather_overlap && (plan.zero == 1 || plan.zero == 2);
  step.sync_each_micro_batch = synchronises_every_micro_batch(plan);
  const bool all_seen = recipes == Recipes::kept || inside == InsideLayers::seen || symmetry == Symmetry::ignored;
  RankClassBuilder builder(scenario, train, model, topology, step, recipes,
                           all_seen ? Extent::whole : Extent::few_nodes);
  build_classes(scenario, symmetry, inside, builder);
  if (builder.transfers().stands_for() > 1.0) step.few_nodes = builder.transfers().topology();

  const auto gpus = static_cast<int>(plan_gpus(plan, scenario.cluster));
  if (gpus > 1 && train.code.clip_gradients && !servers_update(plan)) {
    step.gradient_norm = builder.transfers().norm_time();
    if (recipes == Recipes::kept) {
      step.norm_recipe = recipe_of(CollectiveWork{.size = Bytes(4.0), .ranks = gpus});
    }
  }
  step.slowest_replica = waiting_for_slowest(step, plan, model);
  // A recorded step has its loop's kernels within; what else a loop does runs beside it.
  if (plan.execution != ExecutionMode::cuda_graph) {
    step.once_per_step = Seconds(scenario.calibration.host.step_us * 1e-6);
  }

  if (train.loader) add_loader(step, *train.loader, scenario, train, builder.transfers().topology());
  step.model_flops_per_gpu = model.training_flops_per_sample() * (static_cast<double>(train.global_batch) / gpus);
  return step;
}

}  // namespace foretrain
