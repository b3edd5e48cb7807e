#include "model/training/outcome/batch_split.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/parallelism/layout.hpp"
#include "model/training/graph/pass_slices.hpp"

namespace foretrain {

namespace {

/// Times of the kinds, longest first.
std::vector<double> times_of(const std::vector<ReplicaKind>& kinds) {
  std::vector<double> times;
  times.reserve(kinds.size());
  for (const ReplicaKind& kind : kinds) times.push_back(kind.micro_batches / kind.speed);
  std::ranges::sort(times, std::ranges::greater());
  return times;
}

Seconds pass_time(const Step::RankClass& rank_class) {
  Seconds time;
  for (const Step::Chunk& chunk : rank_class.chunks) {
    if (chunk.units.empty()) time += chunk.both_ways();
    for (const ShardedUnit& unit : chunk.units) time += unit.forward.time.total() + unit.backward.time.total();
  }
  return time;
}

void require_whole_replicas(const Step& step, const std::function<int(const Step::RankClass&)>& group_of) {
  for (const Step::RankClass& rank_class : step.rank_classes) {
    const bool mixed = std::ranges::any_of(rank_class.lockstep_classes, [&](int other) {
      return group_of(step.rank_classes[at_index(other)]) != group_of(rank_class);
    });
    if (mixed)
      throw ImpossiblePlan("replicas that span nodes of several kinds have no speed of their own", "plan.split");
    const bool meets = std::ranges::any_of(rank_class.chunks, [](const Step::Chunk& chunk) {
      return std::ranges::any_of(slices_of(chunk.passes[PassKind::forward]),
                                 [](const PassSlice& piece) { return !piece.transfers.empty(); });
    });
    if (rank_class.split == Step::RankClass::SplitMode::all && meets) {
      throw ImpossiblePlan("collectives inside layers that meet other traffic in every pass", "plan.split");
    }
  }
}

}  // namespace

void divide_micro_batches(std::vector<ReplicaKind>& kinds, int total) {
  std::vector<ReplicaKind> tried = kinds, best;
  const std::function<void(std::size_t, int)> try_from = [&](std::size_t kind, int left) {
    ReplicaKind& own = tried[kind];
    if (kind + 1 == tried.size()) {
      if (left < own.replicas || left % own.replicas != 0) return;
      own.micro_batches = left / own.replicas;
      if (best.empty() || times_of(tried) < times_of(best)) best = tried;
      return;
    }
    for (int each = 1; each * own.replicas < left; ++each) {
      own.micro_batches = each;
      try_from(kind + 1, left - each * own.replicas);
    }
  };
  try_from(0, total);
  if (best.empty())
    throw ImpossiblePlan("the micro-batches of a step cannot be divided among the replicas", "plan.split");
  kinds = std::move(best);
}

std::vector<ReplicaKind> split_batch(Step& step, const Scenario& scenario, const TrainWorkload& train,
                                     const Topology& topology, BatchSplit split) {
  const Plan& plan = scenario.plan;
  const auto group_of = [&](const Step::RankClass& rank_class) {
    return topology.group_of_node(topology.node_of(rank_class.first_rank));
  };
  struct Ranks {
    int count = 0;
    Seconds pass;
  };
  std::map<int, Ranks> groups;
  for (const Step::RankClass& rank_class : step.rank_classes) {
    Ranks& ranks = groups[group_of(rank_class)];
    ranks.count += rank_class.ranks;
    ranks.pass = std::max(ranks.pass, pass_time(rank_class));
  }
  std::vector<ReplicaKind> kinds;
  for (const auto& [group, ranks] : groups) {
    const double peak = scenario.cluster.groups.empty()
                            ? 1.0
                            : scenario.cluster.groups[at_index(group)].node.gpu.matrix_rate(train.precision).value();
    const double speed = split == BatchSplit::best ? 1.0 / ranks.pass.value() : peak;
    kinds.push_back({group, ranks.count / (plan.tensor * plan.context), speed, micro_batches(train, plan)});
  }
  if (kinds.size() < 2 || split == BatchSplit::equal) return kinds;
  require_whole_replicas(step, group_of);
  divide_micro_batches(kinds, micro_batches(train, plan) * plan.data);
  step.micro_batches = std::ranges::max(kinds, {}, &ReplicaKind::micro_batches).micro_batches;
  for (Step::RankClass& rank_class : step.rank_classes) {
    const auto own = std::ranges::find(kinds, group_of(rank_class), &ReplicaKind::group);
    rank_class.missing_micro_batches = step.micro_batches - own->micro_batches;
  }
  return kinds;
}

}  // namespace foretrain
