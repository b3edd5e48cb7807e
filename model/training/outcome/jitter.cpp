#include "model/training/outcome/jitter.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/spread.hpp"
#include "model/training/graph/step_graph.hpp"

namespace foretrain {

namespace {

constexpr int steps_drawn = 40;

/// Kernels take longer; the host's work and collectives do not.
void slow_down(PassCost& pass_cost, double factor) {
  pass_cost.time.compute *= factor;
  for (PassCost::Part& part : pass_cost.parts) {
    part.again *= factor;
    part.own *= factor;
  }
}

void slow_down(Step::RankClass& rank_class, double factor) {
  for (Step::Chunk& chunk : rank_class.chunks) {
    chunk.visit_pass_costs([factor](PassCost& pass_cost) { slow_down(pass_cost, factor); });
  }
  rank_class.optimizer.compute *= factor;
}

void slow_down(LoweredCollective& lowered, double factor) {
  for (LoweredCollective::Phase& phase : lowered.phases) {
    for (Flow& flow : phase.flows) flow.bytes *= factor;
  }
}

/// Factors that devices share with others, by GPU.
std::vector<double> shared_factors(const Step& step, const Jitter& jitter, const Topology& topology, int draw, int of) {
  constexpr int nodes = 500'000'000, racks = 2 * nodes, throttles = 3 * nodes;  // draws of their own
  const std::vector<int>& class_of_rank = step.class_of_rank;
  const std::size_t gpus = class_of_rank.size();
  std::vector<double> factors(gpus, 1.0);
  std::vector<std::pair<double, std::size_t>> chances;
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    const int node = topology.node_of(static_cast<int>(gpu));
    factors[gpu] *= compute_factor(node, nodes + draw, jitter.node);
    factors[gpu] *= compute_factor(node / jitter.nodes_per_rack, racks + draw, jitter.rack);
    if (class_of_rank[gpu] >= 0) chances.emplace_back(uniform(static_cast<int>(gpu), throttles + draw), gpu);
  }
  const double level = (of + 0.5) / steps_drawn;
  const int throttled = throttled_at_once(static_cast<int>(chances.size()), jitter.throttled, level);
  std::ranges::partial_sort(chances, chances.begin() + throttled);
  for (int i = 0; i < throttled; ++i) factors[chances[at_index(i)].second] /= jitter.throttled_speed;
  return factors;
}

/// The factors of each rank class's slowest device.
std::vector<double> lane_factors(const Step& step, const Jitter& jitter, const Topology& topology, int draw, int of) {
  std::vector<double> slowest;
  if (!(jitter.node > 0.0 || jitter.rack > 0.0 || jitter.throttled > 0.0)) {
    for (const Step::RankClass& rank_class : step.rank_classes) {
      slowest.push_back(largest_factor(rank_class.first_rank, rank_class.ranks, draw, jitter.compute));
    }
    return slowest;
  }
  slowest.resize(step.rank_classes.size());
  const std::vector<double> shared = shared_factors(step, jitter, topology, draw, of);
  const std::vector<int>& class_of_rank = step.class_of_rank;
  std::vector<int> ranks_before(step.rank_classes.size());
  for (std::size_t gpu = 0; gpu < shared.size(); ++gpu) {
    if (class_of_rank[gpu] < 0) continue;
    const std::size_t rank_class = at_index(class_of_rank[gpu]);
    const double own =
        compute_factor(step.rank_classes[rank_class].first_rank + ranks_before[rank_class]++, draw, jitter.compute);
    slowest[rank_class] = std::max(slowest[rank_class], own * shared[gpu]);
  }
  return slowest;
}

}  // namespace

int throttled_at_once(int devices, double share, double level) {
  if (!(share > 0.0)) return 0;
  double below = 0.0;
  double log_of_ways = 0.0;
  for (int count = 0; count < devices; ++count) {
    below += std::exp(log_of_ways + count * std::log(share) + (devices - count) * std::log1p(-std::min(share, 1.0)));
    if (below >= level) return count;
    log_of_ways += std::log(devices - count) - std::log(count + 1.0);
  }
  return devices;
}

std::vector<Seconds> steps_with_jitter(const Step& step, const Jitter& jitter, const Topology& topology,
                                       const std::function<Execution(const TaskGraph&)>& execute) {
  std::vector<Seconds> lengths;
  for (int i = 0; i < steps_drawn; ++i) {
    const int draw = jitter.seed * steps_drawn + i;
    Step drawn = step;
    const std::vector<double> factors = lane_factors(step, jitter, topology, draw, i);
    for (std::size_t rank_class = 0; rank_class < factors.size(); ++rank_class)
      slow_down(drawn.rank_classes[rank_class], factors[rank_class]);
    int flows = 0;
    for (Step::Transfer& transfer : drawn.transfers) {
      for (Step::Transfer::Part& part : transfer.parts) {
        int own = 0;
        for (const LoweredCollective::Phase& phase : part.lowered.phases) {
          own = std::max(own, static_cast<int>(phase.flows.size()));
        }
        if (own == 0) continue;
        const double factor = largest_factor(-1 - flows - own, own, draw, jitter.network);
        flows += own;
        slow_down(part.lowered, factor);
        part.uncontended *= factor;
        part.links *= factor;
      }
    }
    lengths.push_back(execute(step_graph(drawn).graph).makespan);
  }
  std::ranges::sort(lengths);
  return lengths;
}

}  // namespace foretrain
