// Limits of a training against its prediction.
#include "reports/studies/plan_limits.hpp"

#include "model/base/units.hpp"
#include "reports/studies/plan_report.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

constexpr double day = 86400.0;

/// Nine of ten such trainings take from 40 to 62.5 days, 50 in the middle, for a million.
TrainResult fifty_days() {
  TrainResult train;
  train.time_to_train = Seconds(50.0 * day);
  train.cost_usd = 1e6;
  TrainResult::Bill& bill = train.bill.emplace();
  bill.shortest = Seconds(40.0 * day);
  bill.longest = Seconds(62.5 * day);
  return train;
}

RankedPlan plan_on(const char* name, double days, double usd) {
  RankedPlan plan;
  plan.machines = plan.hardware = name;
  auto& train = plan.result.work.emplace<TrainResult>();
  train.time_to_train = Seconds(days * day);
  train.cost_usd = usd;
  return plan;
}

}  // namespace

TEST_CASE("Money is read with its multiples, and refused without its currency") {
  CHECK(parse_usd("3 M USD") == 3e6);
  CHECK(parse_usd("250k USD") == 250e3);
  CHECK(parse_usd("1.2 billion USD") == 1.2e9);
  CHECK(parse_usd("75 USD") == 75.0);
  for (const char* wrong : {"3 M", "USD", "3 M EUR", "3 apples USD", "-1 USD", "0 USD", "nan USD"}) {
    CHECK_THROWS_AS(parse_usd(wrong), UnitError);
  }
}

TEST_CASE("Of two limits the one that is exceeded more counts") {
  const TrainResult train = fifty_days();
  CHECK(excess(train, {}) == 0.0);
  CHECK(excess(train, {Seconds(100.0 * day), {}}) == Approx(0.5));
  CHECK(excess(train, {Seconds(100.0 * day), 0.8e6}) == Approx(1.25));
  CHECK(excess(train, {Seconds(25.0 * day), 0.8e6}) == Approx(2.0));
}

TEST_CASE("The chance of staying within is a half at the middle, and nineteen of twenty at the range's end") {
  const TrainResult train = fifty_days();
  const auto within = [&](double days) { return chance_within(train, {Seconds(days * day), {}}); };
  CHECK(within(50.0) == Approx(0.5));
  CHECK(within(62.5) == Approx(0.95));
  CHECK(within(40.0) == Approx(0.05));
  CHECK(within(1000.0) == Approx(1.0));
  CHECK(chance_within(train, {}) == 1.0);
}

TEST_CASE("In front of the machines compared are those that none beats in both days and dollars") {
  PlanReport report;
  compare_machines(report, {plan_on("fast", 20.0, 2e6), plan_on("slow and dear", 40.0, 2.5e6),
                            plan_on("cheap", 50.0, 1e6), plan_on("as fast as cheap", 50.0, 1.5e6)});
  std::string names;
  for (const RankedPlan& plan : report.machines) names += plan.machines + (plan.in_front ? "* " : " ");
  CHECK(names == "cheap* as fast as cheap fast* slow and dear ");
}
