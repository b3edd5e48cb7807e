#include "reports/studies/plan_odds.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/statistics.hpp"
#include "model/memory/shortage.hpp"

namespace foretrain {

namespace {

constexpr int draw_count = 64;

/// What plans are off by, in each draw.
class Draws {
 public:
  Draws(const std::vector<UncertainPlan>& plans, double own_spread, double memory_spread, int draws)
      : own_spread_(own_spread), memory_spread_(memory_spread) {
    for (const UncertainPlan& plan : plans) {
      for (std::size_t i = unknown_.size(); i < plan.effects.size(); ++i) unknown_.push_back(normal_deviates(i, draws));
      for (std::size_t i = 0; i < plan.parts.size(); ++i) {
        const auto [place, is_new] = own_.try_emplace({i, plan.parts[i]});
        if (!is_new) continue;
        place->second.step = normal_deviates(hash_of(draw_count, i, plan.parts[i]), draws);
        if (memory_spread > 0.0) place->second.memory = normal_deviates(hash_of(i, plan.parts[i]), draws);
      }
    }
  }

  /// ln(step ÷ predicted).
  [[nodiscard]] double log(const UncertainPlan& plan, std::size_t draw) const {
    double log = own_spread_ * own(plan, draw, &Part::step);
    for (std::size_t i = 0; i < plan.effects.size(); ++i) {
      const double z = unknown_[i][draw];
      log += z < 0.0 ? -z * plan.effects[i].better : z * plan.effects[i].worse;
    }
    if (memory_spread_ > 0.0 && std::log(plan.filled) + memory_spread_ * own(plan, draw, &Part::memory) > 0.0) {
      log += std::log(shortage_slowdown);
    }
    return log;
  }

 private:
  /// By how much everything with a part is off, in each draw.
  struct Part {
    std::vector<double> step, memory;
  };

  /// The mean of its parts, as a deviate.
  [[nodiscard]] double own(const UncertainPlan& plan, std::size_t draw, std::vector<double> Part::*what) const {
    if (plan.parts.empty()) return 0.0;
    double sum = 0.0;
    for (std::size_t i = 0; i < plan.parts.size(); ++i) sum += (own_.at({i, plan.parts[i]}).*what)[draw];
    return sum / std::sqrt(number(plan.parts.size()));
  }

  double own_spread_, memory_spread_;
  std::vector<std::vector<double>> unknown_;
  std::map<std::pair<std::size_t, std::uint64_t>, Part> own_;
};

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
  const Draws drawn(plans, own_spread, memory_spread, draws);
  std::vector<std::vector<double>> logs;
  for (const UncertainPlan& plan : plans) {
    std::vector<double>& own = logs.emplace_back();
    for (int draw = 0; draw < draws; ++draw) own.push_back(drawn.log(plan, at_index(draw)));
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
