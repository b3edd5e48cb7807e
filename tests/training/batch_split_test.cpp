// R18: micro-batches divided among replicas on unequal nodes.
#include "model/training/outcome/batch_split.hpp"

#include "model/base/error.hpp"
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

std::vector<int> divided(std::vector<ReplicaKind> kinds, int total) {
  divide_micro_batches(kinds, total);
  std::vector<int> each;
  for (const ReplicaKind& kind : kinds) each.push_back(kind.micro_batches);
  return each;
}

TrainResult split_as(const std::string& split, const std::vector<std::string>& further = {}) {
  std::vector<std::string> overrides = further;
  overrides.push_back("plan.split=" + split);
  return *estimate(load_scenario("unequal-split-h100-a100", overrides)).train();
}

}  // namespace

TEST_CASE("micro-batches go where their time is shortest") {
  // 4 and 6 replicas, of which the first are three times as fast: 4 · 15 + 6 · 5 = 90.
  CHECK(divided({{0, 4, 3.0, 0}, {1, 6, 1.0, 0}}, 90) == std::vector<int>{15, 5});
  // Whole micro-batches: 80 = 4 · 14 + 6 · 4, whose slowest take 14/3 = 4.67; 4 · 11 + 6 · 6 would take 6.
  CHECK(divided({{0, 4, 3.0, 0}, {1, 6, 1.0, 0}}, 80) == std::vector<int>{14, 4});
  // Everyone has at least one: a core that is a hundred times slower than two GPUs.
  CHECK(divided({{0, 2, 100.0, 0}, {1, 1, 1.0, 0}}, 51) == std::vector<int>{25, 1});
  CHECK(divided({{0, 1, 4.0, 0}, {1, 1, 2.0, 0}, {2, 1, 1.0, 0}}, 14) == std::vector<int>{8, 4, 2});
  // Two and two replicas cannot have nine micro-batches.
  std::vector<ReplicaKind> odd = {{0, 2, 1.0, 0}, {1, 2, 1.0, 0}};
  CHECK_THROWS_AS(divide_micro_batches(odd, 9), ImpossiblePlan);
}

TEST_CASE("a kind's speed is that of its passes, which sharded units have one by one") {
  // A micro-batch takes 1 + 2 s on both kinds of nodes; the first kind's units copy gradients for another 3 s. Twelve
  // micro-batches among one replica of each: 4 · 6 s = 8 · 3 s.
  const Scenario scenario = load_scenario("unequal-split-h100-a100", {"plan={ zero: 3, split: best }"});
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  const Topology topology(scenario.cluster);
  Step step;
  for (const double copies : {3.0, 0.0}) {
    Step::RankClass& rank_class = step.rank_classes.emplace_back();
    rank_class.first_rank = copies > 0.0 ? 0 : topology.gpus() - 1;
    ShardedUnit unit;
    unit.forward.time.compute = Seconds(1.0);
    unit.backward.time.compute = Seconds(2.0 + copies);
    Step::Chunk& chunk = rank_class.chunks.emplace_back();
    chunk.passes[PassKind::forward].time.compute = Seconds(1.0);
    chunk.passes[PassKind::backward].time.compute = Seconds(2.0);
    chunk.units.push_back(unit);
  }
  Scenario two = scenario;
  two.plan.data = 2;
  TrainWorkload twelve = train;
  twelve.global_batch = 12 * twelve.micro_batch;
  const std::vector<ReplicaKind> kinds = split_batch(step, two, twelve, topology, BatchSplit::best);
  REQUIRE(kinds.size() == 2);
  CHECK((kinds[0].micro_batches == 4 && kinds[1].micro_batches == 8));
}

TEST_CASE("an equal split waits for the slower GPUs; one by speed does not") {
  const TrainResult equal = split_as("equal"), peak = split_as("proportional"), best = split_as("best");
  for (const TrainResult* train : {&equal, &peak, &best}) {
    REQUIRE(train->split);
    int micro_batches = 0;
    for (const auto& kind : train->split->kinds) micro_batches += kind.replicas * kind.micro_batches;
    CHECK(micro_batches == 640);
    CHECK(train->split->equal_step.value() == Approx(equal.step_time.value()).epsilon(1e-9));
  }
  CHECK(equal.split->kinds[0].micro_batches == 64);
  CHECK(best.split->kinds[0].micro_batches > 64);
  CHECK(best.step_time < equal.step_time);
  CHECK(best.step_time <= peak.step_time);
  // Ten replicas together are as fast as the sum of their speeds, but for whole micro-batches and what follows the
  // passes.
  const double h100 = best.split->kinds[0].micro_batches, a100 = best.split->kinds[1].micro_batches;
  const double gain = 64.0 * 10.0 / (4.0 * 64.0 * (h100 / a100) + 6.0 * 64.0);
  CHECK(best.step_time / equal.step_time == Approx(gain).epsilon(0.07));
}

TEST_CASE("equal nodes have equal shares, whatever the split") {
  const std::vector<std::string> alike = {"cluster={ node: dgx-a100-80gb, nodes: 10 }"};
  CHECK(split_as("best", alike).step_time == split_as("equal", alike).step_time);
}

TEST_CASE("a first or last stage may have no layer: it embeds, or makes the loss") {
  const auto stages = [](const std::string& layers) {
    return *estimate(load_scenario("unequal-stages-by-speed", {"plan.stage_layers=" + layers})).train();
  };
  const TrainResult all = stages("[8, 8, 8, 8]"), bare = stages("[0, 16, 16, 0]");
  CHECK(bare.step_time > all.step_time);
  CHECK(bare.memory.total() > Bytes(0.0));
  CHECK_THROWS_AS(stages("[16, 0, 8, 8]"), ScenarioError);
  CHECK_THROWS_AS(stages("[0, 16, 17, 0]"), ScenarioError);
}

TEST_CASE("pipeline stages by speed are faster than equal ones") {
  const TrainResult by_speed = *estimate(load_scenario("unequal-stages-by-speed")).train();
  const TrainResult equal =
      *estimate(load_scenario("unequal-stages-by-speed", {"plan.stage_layers=[8, 8, 8, 8]"})).train();
  CHECK(by_speed.step_time < 0.9 * equal.step_time);
  const Plan plan = load_scenario("unequal-stages-by-speed").plan;
  REQUIRE(plan.stage_layers.size() == 4);
  CHECK(plan.stage_layers[0] > 8);
  CHECK(plan.stage_layers[3] < 8);
}
