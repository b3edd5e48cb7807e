// Ranking of plans: the names of their hardware, with - where not in front.
#include "reports/studies/plan_report.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

RankedPlan plan_on(const char* hardware, Seconds step) {
  RankedPlan plan;
  plan.hardware = hardware;
  plan.result.work = TrainResult{};
  plan.result.train()->step_time = step;
  plan.value = step.value();
  return plan;
}

std::vector<std::string> ranked(std::vector<RankedPlan> plans) {
  PlanReport report;
  report.ranked = std::move(plans);
  finish(report);
  std::vector<std::string> names;
  for (const RankedPlan& plan : report.ranked) names.push_back(plan.hardware + (plan.in_front ? "" : "-"));
  return names;
}

}  // namespace

TEST_CASE("a plan says what keeps its cards from their rate where the best one's are not kept from it") {
  PlanReport report;
  report.ranked = {plan_on("800", 120.0_ms), plan_on("500", 100.0_ms)};
  report.ranked.front().limits = {"a link limits a NIC of 800 Gbit/s to 480 Gbit/s"};
  finish(report);
  CHECK(report.ranked.back().why.ends_with("; a link limits a NIC of 800 Gbit/s to 480 Gbit/s"));
}

TEST_CASE("a plan that may be short of memory comes behind one that is not, and says why") {
  // In one case of ten a step takes four times as long: 130 ms are to be expected of 100, more than 120.
  RankedPlan full = plan_on("full", 100.0_ms);
  full.chance_of_shortage = 0.1;
  const RankedPlan roomy = plan_on("roomy", 120.0_ms);
  CHECK(full.expected() == Approx(0.13));
  PlanReport report;
  report.ranked = {full, roomy};
  finish(report);
  CHECK(report.ranked.front().hardware == "roomy");
  CHECK(report.ranked.back().why == "short of memory with a chance of 10 %");
  full.chance_of_shortage = 0.05;
  report.ranked = {full, roomy};
  finish(report);
  CHECK(report.ranked.front().hardware == "full");
}

TEST_CASE("a plan beyond the learned runs comes behind one that a slower network would hardly hold up, and says why") {
  RankedPlan beyond = plan_on("beyond", 100.0_ms);
  beyond.caution = 1.3;
  CHECK(beyond.expected() == Approx(0.13));
  PlanReport report;
  report.ranked = {beyond, plan_on("within", 120.0_ms)};
  finish(report);
  CHECK(report.ranked.front().hardware == "within");
  CHECK(report.ranked.back().why == "waits more for groups beyond the learned runs");
}

TEST_CASE("the front has the plans that none beats in time, cost and memory together, and no others") {
  const auto plan = [](const char* name, double milliseconds, double usd, double gigabytes) {
    RankedPlan one = plan_on(name, Seconds(milliseconds * 1e-3));
    one.usd = usd;
    one.result.train()->memory.weights = Bytes(gigabytes * 1e9);
    one.result.train()->memory.capacity = Bytes(80e9);
    return one;
  };
  PlanReport report;
  report.ranked = {plan("fast", 100.0, 3.0, 60.0), plan("beaten", 110.0, 3.0, 70.0), plan("lean", 120.0, 3.0, 20.0),
                   plan("cheap", 130.0, 1.0, 70.0)};
  finish(report);
  const std::string text = to_text(report);
  const std::string front = text.substr(text.find("Pareto front"));
  for (const char* name : {"fast", "lean", "cheap"}) {
    CHECK_THAT(front.substr(0, front.find("\n\n")), Catch::Contains(std::string(name) + ":"));
  }
  CHECK_THAT(front.substr(0, front.find("\n\n")), !Catch::Contains("beaten:"));
  // Plans beyond the limits are no choice, as long as another plan keeps them; else all are.
  const auto in_front = [&](double of_fast, double of_beaten) {
    report.ranked = {plan("fast", 100.0, 3.0, 60.0), plan("beaten", 110.0, 3.0, 70.0)};
    report.ranked[0].excess = of_fast;
    report.ranked[1].excess = of_beaten;
    finish(report);
    const auto found = std::ranges::find(report.ranked, true, &RankedPlan::in_front);
    return found->hardware;
  };
  CHECK(in_front(1.2, 1.0) == "beaten");
  CHECK(in_front(1.0, 0.9) == "fast");
  CHECK(in_front(1.2, 1.3) == "fast");
}

TEST_CASE("a plan loses by what takes longest more, by memory or money where these are the goal") {
  const auto why_of = [](const RankedPlan& best, const RankedPlan& other, PlanGoal goal = PlanGoal::time) {
    PlanReport report;
    report.goal = goal;
    report.ranked = {best, other};
    finish(report);
    CHECK(report.ranked.front().why.empty());
    return report.ranked.back().why;
  };
  RankedPlan best = plan_on("best", 100.0_ms);
  best.result.train()->breakdown.compute = 80.0_ms;
  best.result.train()->breakdown.exposed_communication = 20.0_ms;
  best.result.train()->communication["gradient all-reduce"].exposed = 20.0_ms;
  RankedPlan other = best;
  CHECK(why_of(best, other) == "equally fast");
  TrainResult& train = *other.result.train();
  const auto takes = [&](Seconds compute, Seconds gradients, Seconds tensor) {
    train.breakdown.compute = compute;
    train.breakdown.exposed_communication = gradients + tensor;
    train.communication["gradient all-reduce"].exposed = gradients;
    train.communication["tensor all-reduce"].exposed = tensor;
    train.step_time = compute + gradients + tensor;
    other.value = train.step_time.value();
  };
  takes(95.0_ms, 21.0_ms, 8.0_ms);
  CHECK(why_of(best, other) == "compute +15.0 ms");
  other.point.recompute = Recompute::full;
  CHECK(why_of(best, other) == "recomputation +15.0 ms");
  takes(85.0_ms, 21.0_ms, 8.0_ms);  // 9 ms more in all, of which 8 are the tensor ranks'
  CHECK(why_of(best, other) == "exposed tensor all-reduce +9.00 ms");
  takes(85.0_ms, 29.0_ms, 8.0_ms);
  CHECK(why_of(best, other) == "exposed gradient all-reduce +17.0 ms");
  RankedPlan even = best;  // a quarter of a second more of both: the first part is reported
  even.result.train()->breakdown.compute = Seconds(0.5);
  even.result.train()->breakdown.exposed_communication = Seconds(0.25);
  takes(Seconds(0.75), Seconds(0.5), Seconds(0.0));
  CHECK(why_of(even, other) == "recomputation +250 ms");
  // Faster, but short of memory in one case of a hundred, or a little more.
  takes(70.0_ms, 29.0_ms, 0.0_ms);
  other.chance_of_shortage = 0.01;
  CHECK(why_of(best, other) == "slower on average");
  other.chance_of_shortage = 0.012;
  CHECK(why_of(best, other) == "short of memory with a chance of 1 %");
  other.chance_of_shortage = 0.0;
  best.value = 1.0;
  other.value = 2.0;
  CHECK(why_of(best, other, PlanGoal::cost) == "costs more");
  train.memory.weights = Bytes(30e9);
  best.result.train()->memory.weights = Bytes(20e9);
  train.memory.capacity = best.result.train()->memory.capacity = Bytes(80e9);
  CHECK(why_of(best, other, PlanGoal::memory) == "10.0 GB more memory");
  CHECK(why_of(best, other, PlanGoal::cost) == "costs more");
}

TEST_CASE("plans beyond a limit come last, the nearest to it first; at the limit they are within") {
  const auto plan = [](const char* name, Seconds step, double excess) {
    RankedPlan one = plan_on(name, step);
    one.excess = excess;
    return one;
  };
  CHECK(ranked({plan("far", 80.0_ms, 1.9), plan("near", 90.0_ms, 1.1), plan("at", 100.0_ms, 1.0),
                plan("within", 110.0_ms, 0.5)}) == std::vector<std::string>{"at", "within-", "near-", "far-"});
}
