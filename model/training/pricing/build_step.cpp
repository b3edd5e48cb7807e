#include "model/training/pricing/build_step.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/collectives/contention.hpp"
#include "model/collectives/library.hpp"
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
              Step& step, Recipes recipes, InsideLayers inside)
      : scenario_(scenario),
        plan_(scenario.plan),
        train_(train),
        topology_(topology),
        step_(step),
        inside_(inside),
        transfers_(scenario, topology, step.transfers) {
    if (scenario.cluster.groups.empty()) kinds_.emplace_back(scenario, model, *this, recipes);
    for (std::size_t group = 0; group < scenario.cluster.groups.size(); ++group) {
      Scenario& alike = alike_.emplace_back(scenario);
      alike.cluster = scenario.cluster.as_group(static_cast<int>(group));
      adapt_to_processor(alike.calibration, alike.cluster);
      kinds_.emplace_back(alike, model, *this, recipes);
    }
  }

  /// All lanes anew. `cuts`: by stage.
  void build(const RankClasses& classes, const std::vector<Step::Lane::Cut>& cuts) {
    step_.lanes.clear();
    step_.lane_of_rank = classes.lane_of_rank;
    step_.activations.clear();
    step_.activation_gradients.clear();
    for (const RankClasses::Lane& lane : classes.lanes) {
      Step::Lane::Cut cut = cuts[static_cast<std::size_t>(lane.stage)];
      if (inside_ == InsideLayers::seen) cut = Step::Lane::Cut::all;
      add({lane.stage, static_cast<int>(step_.lanes.size()), lane.speed, cut != Step::Lane::Cut::none}, lane);
      step_.lanes.back().cut = cut;
    }
    for (int chunk = 0; chunk < kinds_.front().chunks.placement().chunks(); ++chunk) {
      for (int stage = 0; stage < plan_.pipeline; ++stage) add_hop(stage, chunk);
    }
    const std::vector<std::vector<int>> companions = transfers_.companions(step_.lanes.size());
    for (std::size_t lane = 0; lane < companions.size(); ++lane) step_.lanes[lane].companions = companions[lane];
  }

  /// The same once it is known which ranks differ, unless that `is_built`; again where it shows that more has to be
  /// cut.
  void build_divided(const KnownTransfers::Division& division, bool is_built) {
    std::vector<Step::Lane::Cut> cuts = division.cuts;
    if (!is_built) build(division.classes, cuts);
    if (cut_unequal_companions(cuts)) build(division.classes, cuts);
  }

  /// Where what lanes do together takes them unequally long, each collective inside their layers must be seen. True
  /// where that is more than `cuts` said.
  bool cut_unequal_companions(std::vector<Step::Lane::Cut>& cuts) const {
    bool more = false;
    for (const Step::Lane& lane : step_.lanes) {
      Step::Lane::Cut& cut = cuts[static_cast<std::size_t>(lane.stage)];
      if (lane.companions.empty() || cut == Step::Lane::Cut::all) continue;
      if (equally_long(lane, step_.lanes[at_index(lane.companions.front())])) continue;
      cut = Step::Lane::Cut::all;
      more = true;
    }
    return more;
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

  static bool equally_long(const Step::Lane& a, const Step::Lane& b) {
    const auto same = [](Seconds x, Seconds y) { return std::abs((x - y).value()) <= 1e-12 * y.value(); };
    for (std::size_t k = 0; k < a.chunks.size(); ++k) {
      for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
        if (!same(a.chunks[k].time(kind).total(), b.chunks[k].time(kind).total())) return false;
      }
    }
    return true;
  }

  void add(const GradientSync::Place& place, const RankClasses::Lane& ranks) {
    Kind& kind = kind_of(ranks);
    Step::Lane& lane = step_.lanes.emplace_back();
    lane.stage = ranks.stage;
    lane.first_rank = ranks.first_rank;
    lane.ranks = ranks.ranks;
    StageLayers layers;
    lane.chunks = kind.chunks.chunks(place, step_.micro_batches, layers);
    step_.parameters_per_gpu = std::max(step_.parameters_per_gpu, layers.parameters);
    const double copies = replicas_of(plan_);
    lane.saved_parameters =
        (layers.parameters - layers.in_experts) / copies + layers.in_experts / (copies / plan_.expert);
    kind.chunks.set_optimizer(place.speed, layers, lane);
    lane.exchanges_alone = exchanges_alone(step_, lane, plan_);
    lane.optimizer.exposed += lane.exchanges_alone;
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

  const Scenario& scenario_;
  const Plan& plan_;
  const TrainWorkload& train_;
  const Topology& topology_;
  Step& step_;
  InsideLayers inside_;
  TransferTable transfers_;
  std::deque<Scenario> alike_;
  std::deque<Kind> kinds_;  ///< by group of the cluster's nodes
};

/// The gradients' norm for clipping: one number from every rank.
Seconds norm_time(const Scenario& scenario, const Topology& topology) {
  CollectiveCall norm;
  norm.size = Bytes(4.0);
  const auto all_ranks = [&] { return RankGroups{gpus_of(scenario.plan, scenario.cluster)}; };
  if (scenario.background.empty()) {
    const auto known =
        KnownTransfers::on(topology, RankLayout(scenario.plan, scenario.cluster), scenario.calibration.collective);
    if (!known->norm) {
      const Reading reading;
      norm.groups = all_ranks();
      const Seconds time = automatic_time(norm, topology, scenario.calibration);
      known->norm = {time, reads_so_far()};
    }
    note_reads(known->norm->reads);
    return known->norm->time;
  }
  norm.groups = all_ranks();
  return uncontended_time(lower(norm, topology, scenario.calibration), topology, scenario.background);
}

/// Whole stages as classes of ranks, the same for all steps of a layout.
struct StagesKey {
  struct Value {
    RankClasses classes;
    std::vector<Step::Lane::Cut> cuts;  ///< of the last step of whole stages: most likely the next one's
  };
  RankLayout layout;

  bool operator==(const StagesKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return layout.hash(); }
  [[nodiscard]] std::size_t bytes(const Value& stages) const {
    return sizeof(StagesKey) + sizeof(int) * (stages.classes.lane_of_rank.size() + at_index(layout.gpus()));
  }
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

/// Lanes of whole stages first: they say which transfers there are, and these, which ranks are alike and what meets.
void build_lanes(const Scenario& scenario, const Topology& topology, Symmetry symmetry, LaneBuilder builder) {
  const RankLayout layout(scenario.plan, scenario.cluster);
  const int stages = scenario.plan.pipeline;
  const std::vector<Step::Lane::Cut> uncut(static_cast<std::size_t>(stages));
  const auto whole = session().known(StagesKey{layout}, [&] {
    return StagesKey::Value{RankClasses::one_per_stage(stages, layout.stage_of_gpu()), uncut};
  });
  const std::vector<int>& stage_of_rank = whole->classes.lane_of_rank;
  const std::vector<Step::Lane::Cut> tried = symmetry == Symmetry::used ? whole->cuts : uncut;
  const auto build_whole = [&] {
    whole->cuts = uncut;
    if (tried != uncut) builder.build(whole->classes, uncut);
  };
  builder.build(whole->classes, tried);
  if (symmetry == Symmetry::assumed) return;
  const std::vector<double> speeds = speeds_of(scenario, topology, stage_of_rank.size());
  const bool even_speeds = std::ranges::all_of(speeds, [](double speed) { return speed == 1.0; });
  std::optional<KnownTransfers::Shape> shape;
  if (even_speeds && symmetry == Symmetry::used) shape = builder.transfers().shape();
  if (shape) {
    if (const auto known = KnownTransfers::division_of(*shape)) {
      if (known->classes.lanes.empty()) return build_whole();
      builder.transfers().divide(known->classes);
      const bool same = known->classes.lane_of_rank == stage_of_rank && !builder.transfers().divided();
      builder.build_divided(*known, same && known->cuts == tried);
      whole->cuts = same ? known->cuts : uncut;
      return;
    }
  }
  KnownTransfers::Division division;
  division.classes =
      classify(builder.transfers().grouped(), stage_of_rank, speeds, topology, scenario.background, symmetry);
  builder.transfers().divide(division.classes);
  division.cuts = builder.transfers().meetings();
  const bool whole_stages =
      division.classes.lanes.size() == static_cast<std::size_t>(stages) && even_speeds && division.cuts == uncut;
  if (whole_stages && !builder.transfers().divided()) {
    if (shape) KnownTransfers::note_division(std::move(*shape), {});
    return build_whole();
  }
  builder.build_divided(division, false);
  if (shape) KnownTransfers::note_division(std::move(*shape), std::move(division));
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
  build_lanes(scenario, topology, symmetry, LaneBuilder(scenario, train, model, topology, step, recipes, inside));

  const auto gpus = static_cast<int>(plan_gpus(plan, scenario.cluster));
  if (gpus > 1 && train.code.clip_gradients) {
    step.gradient_norm = norm_time(scenario, topology);
    if (recipes == Recipes::kept) {
      step.norm_recipe = recipe_of(CollectiveWork{.size = Bytes(4.0), .ranks = gpus});
    }
  }
  step.slowest_replica = waiting_for_slowest(step, plan, model);
  // A recorded step has its loop's kernels within; what else a loop does runs beside it.
  if (plan.execution != ExecutionMode::cuda_graph) {
    step.once_per_step = Seconds(scenario.calibration.host.step_us * 1e-6);
  }

  if (train.loader) add_loader(step, *train.loader, scenario, train, topology);
  step.model_flops_per_gpu = model.training_flops_per_sample() * (static_cast<double>(train.global_batch) / gpus);
  return step;
}

}  // namespace foretrain
