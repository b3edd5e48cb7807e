#include "reports/studies/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "model/base/format.hpp"
#include "model/base/hash.hpp"
#include "reports/result/largest_change.hpp"

namespace foretrain {

namespace {

std::string memory_missing(const MemoryFootprint& memory) {
  if (!memory.fits_gpu()) return fmt::format("does not fit by {}", format_bytes(memory.total() - memory.capacity));
  return fmt::format("does not fit the host's memory by {}", format_bytes(memory.host - memory.host_capacity));
}

std::string loses_by(const RankedPlan& plan, const RankedPlan& best, PlanGoal goal) {
  const TrainResult &own = plan.train(), &other = best.train();
  if (!own.memory.fits()) return memory_missing(own.memory);
  if (goal == PlanGoal::memory && own.memory.total() > other.memory.total()) {
    return fmt::format("{} more memory", format_bytes(own.memory.total() - other.memory.total()));
  }
  constexpr double likelier = 0.01;  // to be short of memory
  if (plan.chance_of_shortage > best.chance_of_shortage + likelier && own.step_time < other.step_time) {
    return "short of memory with a chance of " + format_chance(plan.chance_of_shortage);
  }
  const Seconds slower = own.step_time - other.step_time;
  if (slower < Seconds(0.0) && plan.caution > best.caution) return "waits more for groups beyond the learned runs";
  if (slower <= Seconds(0.0)) {
    return goal != PlanGoal::time ? "costs more"
           : plan.excess > 1.0    ? "exceeds the limits"
           : plan.expected() < best.expected()
               ? fmt::format("less simple (at most {:.2g} % faster on average)", 100.0 * noise_of_runs)
           : plan.expected() > best.expected() ? std::string("slower on average")
                                               : "equally fast";
  }
  const LargestChange most = largest_change(own, other);
  const bool recomputes = most.part == &Breakdown::compute && plan.point.recompute > best.point.recompute;
  return fmt::format("{} {}{}", recomputes ? "recomputation" : most.name, signed_seconds(most.time), most.also);
}

/// With what keeps its cards from their line rate, where the best plan's are not kept from it.
std::string reason(const RankedPlan& plan, const RankedPlan& best, PlanGoal goal) {
  std::string text = loses_by(plan, best, goal);
  if (plan.limits == best.limits) return text;
  for (const std::string& limit : plan.limits) text += "; " + limit;
  return text;
}

/// Whether `a` is no worse in any figure than `b`, and better in one. Less is better.
template <std::size_t Figures>
bool dominates(const std::array<double, Figures>& a, const std::array<double, Figures>& b) {
  return a != b && std::ranges::equal(a, b, std::ranges::less_equal());
}

/// Values by which plans are compared.
std::array<double, 3> figures_of(const RankedPlan& plan) {
  return {plan.train().step_time.value(), plan.train().memory.total().value(), plan.usd};
}

/// Cost and time of the whole training if its length is stated, else of a step.
std::array<double, 2> usd_and_time(const RankedPlan& plan) {
  const TrainResult& train = plan.train();
  return {train.cost_usd.value_or(plan.usd), train.time_to_train.value_or(train.step_time).value()};
}

/// Ways of dividing the training, of saving memory and of synchronising that a plan uses beyond data parallelism; and
/// how many GPUs hold a replica, in chunks.
std::pair<int, int> complexity(const PlanPoint& point) {
  const int features = (point.tensor > 1) + (point.context > 1) + (point.expert > 1) + (point.pipeline > 1) +
                       (point.interleave > 1) + (point.recompute != Recompute::none) + (point.zero > 1) +
                       (point.zero > 2) + (point.bucket > 0) + (point.order > 0) +
                       static_cast<int>(extras_of(point).size());
  return {features, point.tensor * point.context * point.expert * point.pipeline * point.interleave};
}

/// Parts of a plan: division, pipeline schedule, passes, recomputation and offloading.
std::vector<std::uint64_t> parts_of(const RankedPlan& plan) {
  const PlanPoint& point = plan.point;
  return {hash_of(plan.hardware, point.tensor, point.context, point.expert, point.servers),
          hash_of(point.pipeline, point.schedule, point.interleave), hash_of(point.micro_batch),
          hash_of(point.recompute, point.offload)};
}

/// Moves the simplest of nearly equal plans on the best plan's machines to the front. Returns whether there was one.
bool prefer_simple(std::vector<RankedPlan>& plans) {
  const RankedPlan& best = plans.front();
  const auto is_as_good = [&](const RankedPlan& plan) {
    return plan.odds && plan.hardware == best.hardware && plan.train().memory.fits() &&
           plan.expected() <= best.expected() * (1.0 + noise_of_runs);
  };
  auto simplest = plans.begin();
  for (auto plan = plans.begin(); plan != plans.end(); ++plan) {
    if (is_as_good(*plan) && complexity(plan->point) < complexity(simplest->point)) simplest = plan;
  }
  std::rotate(plans.begin(), simplest, simplest + 1);
  return simplest != plans.begin();
}

}  // namespace

PlanKind kind_of(const PlanPoint& point, const std::string& hardware) {
  return {hardware,          point.tensor,    point.context,  point.expert,     point.pipeline,
          point.micro_batch, point.recompute, point.schedule, point.interleave, point.servers > 0};
}

void set_odds(PlanReport& report, const std::vector<std::vector<Effect>>& effects) {
  std::vector<PlanKind> kinds;
  std::vector<UncertainPlan> plans;
  for (std::size_t i = 0; i < effects.size(); ++i) {
    const PlanKind kind = kind_of(report.ranked[i]);
    const auto known = std::ranges::find(kinds, kind);
    plans.push_back({report.ranked[i].value, effects[i], parts_of(report.ranked[i]), at_index(known - kinds.begin())});
    if (known == kinds.end()) kinds.push_back(kind);
  }
  const SearchOdds odds = odds_of(plans, plan_spread);
  for (std::size_t i = 0; i < plans.size(); ++i) report.ranked[i].odds = odds.plans[i];
  report.curse = odds.curse;
}

void finish(PlanReport& report) {
  const auto fits = [](const RankedPlan& plan) { return plan.train().memory.fits(); };
  std::stable_sort(report.ranked.begin(), report.ranked.end(), [&](const RankedPlan& a, const RankedPlan& b) {
    if (fits(a) != fits(b)) return fits(a);
    const auto key = [](const RankedPlan& plan) {
      const double beyond = plan.excess > 1.0 ? plan.excess : 0.0;
      return std::tuple(beyond, !plan.odds, plan.expected(), plan.result.warnings.size());
    };
    return key(a) < key(b);
  });
  if (report.ranked.empty()) return;
  report.is_simpler = report.ranked.front().odds && prefer_simple(report.ranked);
  const RankedPlan& best = report.ranked.front();
  const auto is_choice = [&](const RankedPlan& plan) {
    const bool beyond_limits = plan.excess > 1.0 && best.excess <= 1.0;
    return fits(plan) && !beyond_limits;
  };
  for (RankedPlan& plan : report.ranked) {
    if (&plan != &best) plan.why = reason(plan, best, report.goal);
    plan.in_front = is_choice(plan) && std::ranges::none_of(report.ranked, [&](const RankedPlan& other) {
                      return is_choice(other) && dominates(figures_of(other), figures_of(plan));
                    });
  }
  // Infeasible plans that would not be better are not reported.
  std::erase_if(report.infeasible, [&](const RankedPlan& plan) { return !(plan.value < best.value) || fits(plan); });
  for (RankedPlan& plan : report.infeasible) plan.why = reason(plan, best, report.goal);
}

void compare_machines(PlanReport& report, std::vector<RankedPlan> best_on_each) {
  std::ranges::stable_sort(best_on_each, {}, usd_and_time);
  for (RankedPlan& plan : best_on_each) {
    plan.in_front = std::ranges::none_of(
        best_on_each, [&](const RankedPlan& other) { return dominates(usd_and_time(other), usd_and_time(plan)); });
  }
  report.machines = std::move(best_on_each);
}

}  // namespace foretrain
