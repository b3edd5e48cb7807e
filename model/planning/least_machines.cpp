#include "model/planning/least_machines.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "model/base/error.hpp"
#include "model/planning/candidate.hpp"
#include "model/scenario/overrides.hpp"

namespace foretrain {

namespace {

/// Result of the search for a plan that fits.
struct Fit {
  bool found = false;
  Bytes states = Bytes::infinity();  ///< least of weights, gradients and optimizer's states of all GPUs together
  Bytes capacity;
};

/// The most thrifty first: a search for one that fits need not look at the rest.
std::vector<PlanPoint> thrifty_passes(const PlanSpace& space, const PlanPoint& layout) {
  std::vector<PlanPoint> passes = space.passes(layout);
  std::ranges::stable_sort(passes, [](const PlanPoint& a, const PlanPoint& b) {
    if (a.recompute != b.recompute) return a.recompute > b.recompute;
    if (a.sequence_parallel != b.sequence_parallel) return a.sequence_parallel;
    return a.micro_batch < b.micro_batch;
  });
  return passes;
}

class LayoutFit {
 public:
  /// Notes what it finds in `fit`.
  LayoutFit(const PlanSpace& space, const PlanPoint& layout, Fit& fit) : space_(space), fit_(fit) {
    for (const PlanPoint& pass : thrifty_passes(space, layout)) {
      if (fit_.found) return;
      for (const PlanPoint& pipelined : space.pipelinings(pass)) look_into(pipelined);
    }
  }
  /// Weights, gradients and the optimizer's states of one of its plans, or that is not known.
  [[nodiscard]] bool states_fit() const { return states_fit_; }

 private:
  void look_into(const PlanPoint& pipelined) {
    for (const PlanPoint& sharded : space_.shardings(pipelined)) {
      const std::vector<PlanPoint> points = space_.synchronisations(sharded);
      if (fit_.found || points.empty() || !least_fits(points.front())) continue;
      fit_.found = std::ranges::any_of(points, [&](const PlanPoint& point) { return fits(point); });
    }
  }

  bool least_fits(const PlanPoint& point) {
    return or_unknown([&] {
      if (!plan_) plan_.emplace(space_, point);
      plan_->take(point);
      const MemoryFootprint memory = plan_->least_memory();
      states_fit_ = states_fit_ || plan_->states_fit();
      const Bytes states = memory.weights + memory.gradients + memory.optimizer;
      fit_.states = std::min(fit_.states, states * static_cast<double>(space_.example().cluster.gpus()));
      return memory.fits();
    });
  }
  bool fits(const PlanPoint& point) {
    return or_unknown([&] {
      plan_->take(point);
      return plan_->memory().fits();
    });
  }
  bool or_unknown(const auto& fits) {
    const std::optional<bool> known = possible(fits);
    if (!known) states_fit_ = true;  // for all that is known
    return known.value_or(false);
  }

  const PlanSpace& space_;
  Fit& fit_;
  std::optional<Candidate> plan_;
  bool states_fit_ = false;
};

/// By accounts of memory alone, the most thrifty plans first.
Fit fit_of(const PlanSpace& space) {
  Fit fit{.capacity = space.example().cluster.node.gpu.memory};
  // Layouts that divide the model most are most likely to fit.
  std::vector<PlanPoint> layouts = space.layouts();
  std::ranges::stable_sort(layouts, {}, &PlanPoint::data);
  std::set<std::array<int, 4>> too_large;
  for (const PlanPoint& layout : layouts) {
    // ZeRO divides states over replicas and the ranks of their sequences alike.
    const std::array<int, 4> divided = {layout.tensor, layout.expert, layout.pipeline, layout.data * layout.context};
    if (fit.found) break;
    if (too_large.contains(divided)) continue;
    if (!LayoutFit(space, layout, fit).states_fit()) too_large.insert(divided);
  }
  return fit;
}

/// Nothing that fits where no plan can be laid out on so many.
Fit fit_on(const MachineCount& machines, const ScenarioOn& scenario_on, const PlanDimensions& chosen) {
  const std::optional<YamlNode> document = scenario_on(machines);
  if (!document) return {};
  return possible([&] { return fit_of(PlanSpace(*document, "least machines", chosen)); }).value_or(Fit{});
}

/// Number of GPUs that hold the least memory of all together. One GPU alone leaves nothing to divide, so that its
/// plans may keep more bytes of a parameter than others would.
std::int64_t least_gpus(const Fit& fit, const MachineCount& machines) {
  constexpr double of_others = 0.95, of_one = 0.6;
  if (fit.found || !is_finite(fit.states)) return 1;
  return static_cast<std::int64_t>(std::ceil((machines.gpus() > 1 ? of_others : of_one) * (fit.states / fit.capacity)));
}

}  // namespace

std::optional<MachineCount> least_machines(const ScenarioOn& scenario_on, const PlanDimensions& chosen,
                                           const MachineCount& machine, bool parts) {
  constexpr int tried_at_least = 16;  // a sample may need many GPUs of a model that needs few
  std::int64_t least = 1;
  const auto fits = [&](const MachineCount& machines) {
    if (machines.gpus() < least) return false;
    const Fit fit = fit_on(machines, scenario_on, chosen);
    least = std::max(least, least_gpus(fit, machines));
    return fit.found;
  };
  for (int gpus = 1; parts && gpus < machine.gpus_per_node; ++gpus) {
    const MachineCount some{1, gpus, false};
    if (fits(some)) return some;
  }
  const auto least_nodes = [&] { return static_cast<int>((least - 1) / machine.gpus_per_node + 1); };
  for (int nodes = 1; nodes <= std::max(2 * least_nodes(), tried_at_least); ++nodes) {
    MachineCount all = machine;
    all.nodes = nodes;
    if (fits(all)) return all;
  }
  return std::nullopt;
}

std::optional<MachineCount> least_machines(const YamlNode& document, const PlanDimensions& chosen,
                                           const Cluster& cluster) {
  if (!cluster.groups.empty()) return std::nullopt;
  const auto on = [&](const MachineCount& machines) -> std::optional<YamlNode> {
    YamlNode changed = document;
    apply_override(changed, {"cluster.nodes", std::to_string(machines.nodes), document.where});
    return changed;
  };
  return least_machines(on, chosen, {1, cluster.gpus_per_node, cluster.gpus_per_node == cluster.node.gpus}, false);
}

}  // namespace foretrain
