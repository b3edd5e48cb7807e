#include "reports/cli/plan_uncertainty.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "model/base/bytestream.hpp"
#include "model/base/number.hpp"
#include "model/job/job.hpp"
#include "model/job/published_uncertainty.hpp"
#include "model/scenario/load/load.hpp"
#include "model/scenario/plan/trainer_reader.hpp"
#include "reports/cli/workers.hpp"
#include "validate/learn/parameters.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

std::vector<Effect> effects_of(Seconds unchanged, const std::vector<UncertainResource>& unknown) {
  std::vector<Effect> effects;
  for (const UncertainResource& one : unknown) {
    Effect& effect = effects.emplace_back();
    if (!one.faster) continue;
    effect.better = std::log(estimated_time(*one.faster) / unchanged);
    effect.worse = std::log(estimated_time(*one.slower) / unchanged);
  }
  return effects;
}

namespace {

std::vector<std::string> answers_of_tasks(std::size_t count, int workers, const TextTask& task) {
  std::vector<std::string> answers(count);
  std::optional<std::string> failure;
  const auto take = [&](std::size_t index, Reply reply) {
    if (reply.kind != Reply::Kind::answer)
      failure = std::move(reply.text);
    else
      answers[index] = std::move(reply.text);
  };
  answer_all(count, workers, task, take, [&] { return failure.has_value() || interrupted(); });
  if (failure && !interrupted()) throw std::runtime_error(*failure);
  return answers;
}

constexpr std::size_t most_drawn = 64;
constexpr double reach = 4.0;  ///< standard deviations of a step: two plans that far apart do not change places

bool fits(const RankedPlan& plan) { return plan.train().memory.fits(); }

/// Number of plans, the best first, that may be the best.
std::size_t finalists(const std::vector<RankedPlan>& plans, double spread) {
  const double most = plans.front().value * std::exp(reach * spread);
  const auto beyond = std::ranges::find_if(plans, [&](const RankedPlan& p) { return !fits(p) || p.value > most; });
  return std::min(most_drawn, at_index(beyond - plans.begin()));
}

/// The network's efficiency is a random walk over doublings: of the nodes beyond the runs that the stack was
/// learned from, and of each group beyond their largest.
void add_caution(PlanReport& report, const Scenario& example, const std::vector<std::vector<Effect>>& effects,
                 const std::vector<UncertainResource>& unknown) {
  const std::vector<int> largest = learned_groups(example.where.document);
  if (!example.learned || largest.empty()) return;
  const auto network = std::ranges::find(unknown, "network bandwidth", &UncertainResource::name);
  if (network == unknown.end()) return;
  const auto which = at_index(network - unknown.begin());
  for (std::size_t i = 0; i < effects.size(); ++i) {
    const PlanPoint& point = report.ranked[i].point;
    const std::array sizes = {point.data, point.tensor, point.pipeline};
    double doublings = doublings_beyond(*example.learned, example.cluster.nodes);
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      doublings += std::log2(std::max(1.0, number(sizes[k]) / largest[k]));
    }
    const double spreads = scaling_spread * std::sqrt(doublings) / network->spread;
    report.ranked[i].caution = std::exp(std::max(effects[i][which].worse, 0.0) * spreads);
  }
}

}  // namespace

RunTasks tasks_shared_out(int workers) {
  return [workers](std::size_t count, const TextTask& task) { return answers_of_tasks(count, workers, task); };
}

void draw_plans(PlanReport& report, const RunTasks& run_tasks) {
  if (report.goal == PlanGoal::memory || std::ranges::none_of(report.ranked, fits)) return;
  const auto scenario_of = [&](const RankedPlan& plan) { return load_scenario(report.file, plan.overrides); };
  std::ranges::stable_sort(report.ranked, {},
                           [](const RankedPlan& plan) { return std::pair(!fits(plan), plan.expected()); });
  const Result& result = report.ranked.front().result;
  const double spread = std::log(result.uncertainty_high / result.uncertainty_low) / (2.0 * ninth);
  const std::size_t count = finalists(report.ranked, spread);
  const std::vector<std::string> answers = run_tasks(count, [&](std::size_t plan) {
    const Scenario scenario = scenario_of(report.ranked[plan]);
    Bytestream bytes;
    bytes.put(effects_of(estimated_time(scenario), uncertain_resources(scenario, spread)));
    return std::move(bytes).text();
  });
  if (std::ranges::any_of(answers, &std::string::empty)) return;  // the user has interrupted the search
  std::vector<std::vector<Effect>> effects;
  for (const std::string& answer : answers) effects.push_back(Bytestream(answer).take<Effect>());
  const std::vector<UncertainResource> unknown = uncertain_resources(scenario_of(report.ranked.front()), spread);
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const Effect& effect = effects.front()[i];
    report.unknowns.push_back({unknown[i].name, unknown[i].spread, 0.5 * (effect.worse - effect.better)});
  }
  add_caution(report, scenario_of(report.ranked.front()), effects, unknown);
  std::ranges::stable_sort(report.unknowns, std::ranges::greater(), &Unknown::moves);
  set_odds(report, effects);
}

}  // namespace foretrain
