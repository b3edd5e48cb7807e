// The page of plans as a whole, from a report made by hand.
#include "reports/studies/plan_report.hpp"

#include <nlohmann/json.hpp>

#include "model/base/csv.hpp"
#include "tests/reports/sample_results.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {

namespace {

RankedPlan ranked(double seconds, int tensor, double usd) {
  RankedPlan plan;
  plan.point.tensor = tensor;
  plan.overrides = {"plan.tensor=" + std::to_string(tensor)};
  plan.result = short_step(seconds);
  plan.estimate = Seconds(0.9 * seconds);
  plan.value = seconds;
  plan.usd = usd;
  return plan;
}

PlanReport plans() {
  PlanReport report;
  report.scenario = "small";
  report.file = "my plan.yaml";
  report.search.plans = 12345;
  report.search.counts.plans = 12345;
  report.search.layouts = 67;
  report.search.counts.estimated = 1000;
  report.search.counts.unfit = 20;
  report.search.complete = true;
  report.ranked = {ranked(0.1, 1, 0.0), ranked(0.11, 2, 0.0)};
  report.ranked[0].in_front = true;
  report.ranked[1].why = "slower by 10 %";
  return report;
}

}  // namespace

TEST_CASE("The page of plans: the space, the best, why others lose, and the front", "[golden]") {
  PlanReport report = plans();
  check_whole("plans-space-best-why-others.txt", to_text(report));
  // Everything that there may be: a price, limits, odds, machines, misses.
  report.search.counts.impossible = 5;
  report.search.counts.plans = 12000;
  report.search.complete = false;
  report.limits = {.time = Seconds(86400.0), .usd = 1000.0};
  RankedPlan& best = report.ranked[0];
  best.usd = 0.5;
  best.excess = 1.25;
  best.odds = PlanOdds{.expected = 0.104, .low = 0.095, .high = 0.12, .chance = 0.625, .regret = 0.015};
  best.chance_of_shortage = 0.012;
  best.limits = {"a card is slower than its slot"};
  best.result.train()->time_to_train = Seconds(90000.0);
  best.result.train()->cost_usd = 1234.0;
  report.ranked[1].excess = 2.0;
  report.ranked[1].usd = 0.25;
  report.ranked[1].in_front = true;
  report.unknowns = {{"arithmetic", 0.05, 0.03}, {"network", 0.004, 0.0}};
  report.curse = 1.01;
  report.is_simpler = true;
  report.better_batch = BetterBatch{60, 64, 8, Seconds(0.09), 1.12};
  report.infeasible = {ranked(0.05, 1, 0.0)};
  report.infeasible[0].why = "needs 90 GB of 80 GB";
  check_whole("plans-space-best-why-others-2.txt", to_text(report));
  report.machines = {report.ranked[0], report.ranked[1]};
  report.machines[0].machines = report.machines[0].hardware = "1 node";
  report.machines[1].machines = "2 nodes";
  report.machines[1].hardware = "2 nodes, 4 GPUs each";
  report.machines[1].in_front = false;
  const std::string text = to_text(report);
  check_whole("plans-space-best-why-others-3.txt", text.substr(text.find("\nBest plan per machine type")));
  // Features beyond framework defaults stand under the best plan, an unmeasured GPU on its own line.
  report.machines.clear();
  report.without_extras = std::numeric_limits<double>::infinity();
  report.ranked[0].point.offload = 1;
  report.ranked[0].is_measured_gpu = false;
  CHECK_THAT(to_text(report),
             Catch::Contains("\n  Plan          micro-batch 1, offload optimizer\n  Without offload no plan fits\n"
                             "  Validation    no training step of this GPU generation is measured\n"));
  report.without_extras = 12.3;
  CHECK_THAT(to_text(report), Catch::Contains("\n  Without offload the best plan takes 12 times as long\n"));
  report.without_extras.reset();
  report.ranked.clear();
  check_whole("plans-space-best-why-others-4.txt", to_text(report));
}

TEST_CASE("Plans as JSON: what is drawn of the objective as steps, what is beyond a limit and too good as shares") {
  PlanReport report = plans();
  report.search.complete = false;
  report.limits = {.time = Seconds(86400.0), .usd = 1000.0};
  RankedPlan& best = report.ranked[0];
  best.value = 4.0;  // of the objective, as a step takes 100 ms: 4.4 are 110 ms
  best.odds = PlanOdds{.expected = 4.4, .low = 3.6, .high = 6.0, .chance = 0.625, .regret = 0.015};
  best.excess = 1.25;
  best.usd = 0.5;
  best.chance_of_shortage = 0.01;
  best.result.train()->time_to_train = Seconds(90000.0);
  TrainResult::Bill& bill = best.result.train()->bill.emplace();
  bill.shortest = Seconds(80000.0);
  bill.longest = Seconds(99000.0);
  bill.usd_high = 1500.0;
  report.unknowns = {{"arithmetic", 0.05, 0.03}};
  report.curse = 1.25;
  const auto json = nlohmann::json::parse(to_json(report));
  for (const auto& [path, value] : std::map<std::string, nlohmann::json>{{"/winners_curse", 0.25},
                                                                         {"/unknowns/0/moves_best", 0.03},
                                                                         {"/limits/time_s", 86400.0},
                                                                         {"/limits/usd", 1000.0},
                                                                         {"/space/complete", false},
                                                                         {"/plans/0/over_limits", 0.25},
                                                                         {"/plans/0/usd_per_step", 0.5},
                                                                         {"/plans/0/cost_high", 1500.0},
                                                                         {"/plans/0/chance_of_shortage", 0.01}}) {
    INFO(path);
    CHECK(json.at(nlohmann::json::json_pointer(path)) == value);
  }
  const auto& first = json["plans"][0];
  CHECK(first["odds"]["expected_s"].get<double>() == Approx(0.11));
  CHECK(first["odds"]["p10_s"].get<double>() == Approx(0.09));
  CHECK(first["odds"]["p90_s"].get<double>() == Approx(0.15));
  CHECK_FALSE(first.contains("cost_low"));
  CHECK_FALSE(first["memory_per_gpu_bytes"].contains("host"));
  CHECK(json["plans"].size() == 2);
  for (const char* key : {"odds", "usd_per_step", "chance_of_shortage", "time_to_train_s", "hardware", "limits"}) {
    CHECK_FALSE(json["plans"][1].contains(key));
  }
  for (const char* key : {"machines", "least_nodes"}) CHECK_FALSE(json.contains(key));
  // Nothing drawn, no limits: nothing is said of them.
  const auto plain = nlohmann::json::parse(to_json(plans()));
  for (const char* key : {"winners_curse", "limits"}) CHECK_FALSE(plain.contains(key));
  CHECK_FALSE(plain["plans"][0].contains("over_limits"));
}

}  // namespace foretrain::test
