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
  const int together = plan.zero == 3 || step.every_micro_batch ? 1 : step.micro_batches;
  const double excess = slowest_replica(model.variation, together, plan.data) - 1.0;
  Seconds longest;
  for (const Step::Lane& lane : step.lanes) {
    Seconds passes;
    for (const Step::Chunk& chunk : lane.chunks) passes += chunk.both_ways();
    longest = std::max(longest, passes);
  }
  const double ends = step.schedule == PipelineSchedule::dualpipe ? 2.0 : 1.0;  // at which micro-batches enter
  return longest * (excess * step.micro_batches / ends);
}

/// Exchanges of tokens that blocks count as hidden behind another micro-batch's passes where there is none: in the
/// first forward pass down the pipeline and the last backward pass up, and in all chunks of a micro-batch that is
/// alone.
Seconds exchanges_alone(const Step& step, const Step::Lane& lane, const Plan& plan) {
  Seconds longest, all;
  for (const Step::Chunk& chunk : lane.chunks) {
    longest = std::max(longest, chunk.hidden_exchanges);
    all += chunk.hidden_exchanges;
  }
  return (step.micro_batches > 1 ? longest : all) * static_cast<double>(plan.pipeline);
}

/// One lane after the other: chunks and their synchronisation, the optimizer, what leaves for the next stage.
class LaneBuilder {
 public:
  LaneBuilder(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
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

  /// All lanes anew.
  void build(const RankClasses& classes) {
    step_.lanes.clear();
    step_.lane_of_rank = classes.lane_of_rank;
    step_.activations.clear();
    step_.activation_gradients.clear();
    for (const RankClasses::Lane& of_layout : classes.lanes) {
      const RankClasses::Lane lane = of_all(of_layout);
      if (&classes == &transfers_.whole() && lane.stage > 0 && repeat(lane)) continue;
      add({lane.stage, static_cast<int>(step_.lanes.size()), lane.speed}, lane);
    }
    for (int chunk = 0; chunk < kinds_.front().chunks.placement().chunks(); ++chunk) {
      for (int stage = 0; stage < plan_.pipeline; ++stage) add_hop(stage, chunk);
    }
    const std::vector<std::vector<int>> companions = transfers_.companions(step_.lanes.size());
    for (std::size_t lane = 0; lane < companions.size(); ++lane) step_.lanes[lane].companions = companions[lane];
  }

  /// Cuts passes as `cuts` say by stage. Where what lanes do together takes them unequally long, each collective inside
  /// their layers must be seen.
  void cut(std::vector<Step::Lane::Cut> cuts, InsideLayers inside) {
    for (const Step::Lane& lane : step_.lanes) {
      const bool unequal =
          !lane.companions.empty() && !equally_long(lane, step_.lanes[at_index(lane.companions.front())]);
      if (unequal || inside == InsideLayers::seen) cuts[at_index(lane.stage)] = Step::Lane::Cut::all;
    }
    for (Step::Lane& lane : step_.lanes) lane.cut = cuts[at_index(lane.stage)];
  }
  [[nodiscard]] TransferTable& transfers() { return transfers_; }

 private:
  /// What layers and their synchronisation take on one kind of node.
  struct Kind {
    Kind(const Scenario& of, const Model& model, LaneBuilder& builder, Recipes recipes)
        : scenario(of), chunks(of, builder.train_, model, builder.topology_, recipes, builder.transfers_) {}
    const Scenario& scenario;  ///< all nodes like those
    ChunkBuilder chunks;
  };
  [[nodiscard]] Kind& kind_of(const RankClasses::Lane& lane) {
    return kinds_[at_index(topology_.group_of_node(topology_.node_of(lane.first_rank)))];
  }

  /// The ranks of the whole cluster that a class of the transfers' layout stands for.
  [[nodiscard]] RankClasses::Lane of_all(RankClasses::Lane lane) const {
    const int data = transfers_.layout().data(), replica = transfers_.layout().ranks_per_stage() / data;
    lane.first_rank += lane.stage * (plan_.data - data) * replica;
    lane.ranks = static_cast<int>(std::int64_t{lane.ranks} * plan_.data / data);
    return lane;
  }

  static bool equally_long(const Step::Lane& a, const Step::Lane& b) {
    const auto same = [](Seconds x, Seconds y) { return std::abs((x - y).value()) <= 1e-12 * y.value(); };
    for (std::size_t k = 0; k < a.chunks.size(); ++k) {
      for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
        if (!same(a.chunks[k].time(kind).total(), b.chunks[k].time(kind).total())) return false;
      }
    }
    return true;
  }

  /// Adds the lane as that of the stage before with its transfers among these ranks, where layers, devices and groups
  /// are alike; false where they are not.
  bool repeat(const RankClasses::Lane& ranks) {
    const bool alike = kinds_.size() == 1 && !splits_backward(plan_.schedule) &&
                       kinds_.front().chunks.alike(ranks.stage - 1, ranks.stage);
    if (!alike) return false;
    Step::Lane lane = step_.lanes.back();
    bool all_repeated = true;
    const auto repeat = [&](int& transfer) {
      if (transfer < 0) return;
      transfer = transfers_.repeated(transfer, ranks.stage);
      all_repeated = all_repeated && transfer >= 0;
    };
    std::map<const LayerCalls*, std::shared_ptr<const LayerCalls>> repeated;
    const auto repeat_calls = [&](Stretch& stretch) {
      for (Stretch::Part& part : stretch.parts) {
        std::shared_ptr<const LayerCalls>& known = repeated[part.calls.get()];
        if (known == nullptr) {
          auto calls = std::make_shared<LayerCalls>(*part.calls);
          calls->visit_transfers(repeat);
          known = std::move(calls);
        }
        part.calls = known;
      }
    };
    for (Step::Chunk& chunk : lane.chunks) {
      chunk.visit_transfers(repeat);
      chunk.visit_stretches(repeat_calls);
      for (InsideCall& call : chunk.inside) repeat(call.transfer);
    }
    if (!all_repeated) return false;
    lane.stage = ranks.stage;
    lane.first_rank = ranks.first_rank;
    lane.ranks = ranks.ranks;
    step_.lanes.push_back(std::move(lane));
    return true;
  }

  void add(const GradientSync::Place& place, const RankClasses::Lane& ranks) {
    Kind& kind = kind_of(ranks);
    Step::Lane& lane = step_.lanes.emplace_back();
    lane.stage = ranks.stage;
    lane.first_rank = ranks.first_rank;
    lane.ranks = ranks.ranks;
    StageLayers layers;
    lane.chunks = kind.chunks.chunks(place, place.stage, step_.micro_batches, layers);
    step_.parameters_per_gpu = std::max(step_.parameters_per_gpu, layers.parameters);
    const double copies = replicas_of(plan_);
    lane.saved_parameters =
        (layers.parameters - layers.in_experts) / copies + layers.in_experts / (copies / plan_.expert);
    kind.chunks.set_optimizer(place.speed, layers, lane);
    lane.optimizer.exposed = exchanges_alone(step_, lane, plan_);
  }

  void add_hop(int stage, int chunk) {
    int there = -1, back = -1;
    const ChunkPlacement& placement = kinds_.front().chunks.placement();
    const std::optional<ChunkPlacement::Place> next = placement.next(stage, chunk);
    if (next && next->stage != stage) {
      const Bytes activation = kinds_.front().chunks.output(stage, chunk);
      const bool reversed = placement.reversed(chunk);
      const int boundary = reversed ? next->stage : stage;
      there = transfers_.hop(boundary, reversed, activation, train_.message_overhead);
      back = transfers_.hop(boundary, !reversed, activation, train_.message_overhead);
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

/// How ranks of whole stages, which have said what there is to send, divide into classes, and what meets.
Division divide(TransferTable& transfers, const Scenario& scenario, const Topology& topology, Symmetry symmetry) {
  const bool even_speeds =
      std::ranges::all_of(scenario.cluster.faults, [](const Fault& f) { return f.gpu < 0 || f.share == 1.0; });
  std::optional<DivisionKey> key;
  if (even_speeds && symmetry == Symmetry::used) key = transfers.division_key();
  if (key) {
    if (const auto known = session().find(*key)) {
      if (known->classes) transfers.divide(*known->classes);
      return *known;
    }
  }
  const RankClasses& whole = transfers.whole();
  Division division;
  division.classes =
      classify(transfers.grouped(), whole.lane_of_rank, speeds_of(scenario, topology, whole.lane_of_rank.size()),
               topology, scenario.background, symmetry);
  transfers.divide(*division.classes);
  division.cuts = transfers.meetings();
  const bool same = division.classes->lanes.size() == whole.lanes.size() && even_speeds && !transfers.divided();
  if (same) division.classes.reset();
  if (key) session().keep(std::move(*key), division);
  return division;
}

/// Lanes of whole stages first: they say which transfers there are, and these, which ranks are alike and what meets.
void build_lanes(const Scenario& scenario, Symmetry symmetry, InsideLayers inside, LaneBuilder& builder) {
  builder.build(builder.transfers().whole());
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
  step.every_micro_batch = synchronises_every_micro_batch(plan);
  const bool all_seen = recipes == Recipes::kept || inside == InsideLayers::seen || symmetry == Symmetry::ignored;
  LaneBuilder builder(scenario, train, model, topology, step, recipes, all_seen ? Extent::whole : Extent::few_nodes);
  build_lanes(scenario, symmetry, inside, builder);
  if (builder.transfers().stands_for() > 1.0) step.few_nodes = builder.transfers().topology();

  const auto gpus = static_cast<int>(plan_gpus(plan, scenario.cluster));
  if (gpus > 1 && train.code.clip_gradients) {
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
