#include "reports/studies/plan_confidence.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/statistics.hpp"
#include "model/memory/memory.hpp"

namespace foretrain {

namespace {

constexpr int draw_count = 64;

using Deviates = Eigen::ArrayXd;  ///< by draw

Deviates drawn_deviates(std::uint64_t which, int draws) {
  const std::vector<double> deviates = normal_deviates(which, draws);
  return Eigen::Map<const Deviates>(deviates.data(), draws);
}

/// Errors of the plans' parts, by position in a plan and by part.
using PartDeviates = std::map<std::pair<std::size_t, std::uint64_t>, Deviates>;

/// The parts of a plan together, as a deviate.
Deviates sum_of(const UncertainPlan& plan, const PartDeviates& parts, int draws) {
  Deviates sum = Deviates::Zero(draws);
  for (std::size_t i = 0; i < plan.parts.size(); ++i) sum += parts.at({i, plan.parts[i]});
  return plan.parts.empty() ? sum : Deviates(sum / std::sqrt(number(plan.parts.size())));
}

}  // namespace

std::vector<double> normal_deviates(std::uint64_t which, int draws) {
  std::vector<std::pair<std::uint64_t, int>> order;
  std::uint64_t state = hash_of(which);
  for (int i = 0; i < draws; ++i) order.emplace_back(split_mix(state), i);
  std::ranges::sort(order);
  std::vector<double> deviates;
  for (const auto& [random, part] : order) deviates.push_back(normal_quantile((number(part) + 0.5) / draws));
  return deviates;
}

std::vector<std::vector<double>> drawn_logs(const std::vector<UncertainPlan>& plans, double own_spread,
                                            double memory_spread, int draws) {
  std::vector<Deviates> unknown;
  PartDeviates steps, memory;
  for (const UncertainPlan& plan : plans) {
    for (std::size_t i = unknown.size(); i < plan.effects.size(); ++i) unknown.push_back(drawn_deviates(i, draws));
    for (std::size_t i = 0; i < plan.parts.size(); ++i) {
      if (steps.contains({i, plan.parts[i]})) continue;
      steps[{i, plan.parts[i]}] = drawn_deviates(hash_of(draw_count, i, plan.parts[i]), draws);
      memory[{i, plan.parts[i]}] = drawn_deviates(hash_of(i, plan.parts[i]), draws);
    }
  }
  std::vector<std::vector<double>> logs;
  for (const UncertainPlan& plan : plans) {
    Deviates log = own_spread * sum_of(plan, steps, draws);
    for (std::size_t i = 0; i < plan.effects.size(); ++i) {
      log += (unknown[i] < 0.0).select(-unknown[i] * plan.effects[i].better, unknown[i] * plan.effects[i].worse);
    }
    if (memory_spread > 0.0) {
      const Deviates filled = std::log(plan.filled) + memory_spread * sum_of(plan, memory, draws);
      log += (filled > 0.0).select(Deviates::Constant(draws, std::log(shortage_slowdown)), 0.0);
    }
    logs.emplace_back(log.begin(), log.end());
  }
  return logs;
}

SearchOdds odds_of(const std::vector<UncertainPlan>& plans, double own_spread) {
  SearchOdds odds;
  if (plans.empty()) return odds;
  const std::vector<std::vector<double>> logs = drawn_logs(plans, own_spread, 0.0, draw_count);
  std::vector<std::vector<double>> values(plans.size());  // by plan and draw
  std::vector<double> least(draw_count), cursed;
  std::map<std::size_t, double> wins;  ///< by kind
  for (std::size_t draw = 0; draw < least.size(); ++draw) {
    std::size_t best = 0, chosen = 0;
    double chosen_prediction = 0.0;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const double factor = std::exp(logs[p][draw]);
      values[p].push_back(plans[p].value * factor);
      if (values[p][draw] < values[best][draw]) best = p;
      // The other way round: the plans are as predicted, and predictions that are off by as much choose among them.
      const double prediction = plans[p].value / factor;
      if (p > 0 && prediction >= chosen_prediction) continue;
      chosen = p;
      chosen_prediction = prediction;
    }
    least[draw] = values[best][draw];
    wins[plans[best].kind] += 1.0;
    cursed.push_back(plans[chosen].value / chosen_prediction);
  }
  for (std::size_t p = 0; p < plans.size(); ++p) {
    PlanOdds& own = odds.plans.emplace_back();
    own.expected = mean(values[p]);
    own.low = quantile(values[p], 0.1);
    own.high = quantile(values[p], 0.9);
    own.chance = wins[plans[p].kind] / draw_count;
    for (std::size_t draw = 0; draw < least.size(); ++draw) own.regret += values[p][draw] / least[draw] - 1.0;
    own.regret /= draw_count;
  }
  odds.curse = std::max(mean(cursed), 1.0);
  return odds;
}

}  // namespace foretrain
