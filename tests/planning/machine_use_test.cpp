// GPUs of each machine that a search tries, and the cost of the others.
#include "model/planning/machine_use.hpp"

#include "model/planning/plan_search.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

YamlNode training(const std::string& cluster, int batch) {
  return parse_yaml(
      "name: racks\ncluster: { " + cluster +
          " }\nworkload: { train: { model: { family: gpt, layers: 4, hidden: 1024, heads: 16, vocabulary: "
          "32000, sequence: 1024 }, global_batch: " +
          std::to_string(batch) + ", micro_batch: 1 } }\n",
      "test.yaml");
}

std::vector<int> used(const std::string& cluster, int batch) {
  std::vector<int> all;
  for (const MachineUse& use : machine_uses(training(cluster, batch))) all.push_back(use.used);
  return all;
}

}  // namespace

TEST_CASE("Machines whose GPUs are no power of two are tried with fewer, and with what divides the batch") {
  // 64 and 32 of 72; 1024 is divided by 64, 1400 by 70, 1152 by 72.
  CHECK(used("node: gb200-nvl72, nodes: 8", 1024) == std::vector{72, 64, 32});
  CHECK(used("node: gb200-nvl72, nodes: 8", 1400) == std::vector{72, 70, 64, 32});
  CHECK(used("node: gb200-nvl72, nodes: 8", 1152) == std::vector{72, 64, 32});
  // 37 of them, more than half, divide 111; of 2,628 no more than half do, of 101 one.
  CHECK(used("node: gb200-nvl72, nodes: 8", 111) == std::vector{72, 64, 37, 32});
  CHECK(used("node: gb200-nvl72, nodes: 8", 2628) == std::vector{72, 64, 32});
  CHECK(used("node: gb200-nvl72, nodes: 8", 101) == std::vector{72, 64, 32});
  // Eight GPUs divide what batches usually are; what a scenario states is kept.
  CHECK(used("node: dgx-h100, nodes: 8", 1024) == std::vector{8});
  CHECK(used("node: gb200-nvl72, nodes: 8, gpus_per_node: 36", 1024) == std::vector{36});
}

TEST_CASE("Whole machines are paid for, however many of their GPUs train") {
  // 72 GPUs at 4 USD are 288 USD a rack and hour.
  YamlNode document = training("node: gb200-nvl72, nodes: 2, price: 4 USD/GPU/hour", 144);
  for (const MachineUse& use : machine_uses(document)) {
    YamlNode own = document;
    for (const std::string& change : use.overrides) apply_override(own, parse_override(change));
    const PlanSpace space(own, "racks", PlanDimensions::all());
    const Cluster& cluster = space.example().cluster;
    CHECK(cluster.gpus_per_node == use.used);
    CHECK(*cluster.usd_per_gpu_hour * cluster.gpus() == Approx(2 * 288.0));
  }
}

TEST_CASE("A batch near the one stated that all GPUs divide, or that leaves stages a power of two") {
  CHECK(dividing_batch(1024, 8 * 72) == 1152);   // twice 576, an eighth more
  CHECK(dividing_batch(1024, 28 * 72) == 1008);  // half of 2016
  CHECK(dividing_batch(1000, 128) == 1024);
  CHECK_FALSE(dividing_batch(1152, 8 * 72));
  CHECK_FALSE(dividing_batch(1024, 2048));  // two GPUs a replica
  CHECK_FALSE(dividing_batch(4, 9));        // the nearest is more than an eighth away
  CHECK(dividing_batch(64, 72) == 72);      // an eighth more, no less
  CHECK_FALSE(dividing_batch(63, 72));      // a ninth of what 9 GPUs divide
  CHECK(dividing_batch(56, 49) == 49);
  CHECK_FALSE(dividing_batch(57, 49));
  CHECK(dividing_batch(100, 33) == 99);
}

TEST_CASE("A rack's search over its uses finds what enumerating each of them finds") {
  // 9 divides neither the batch of 64 nor four layers: all 72 GPUs of a rack cannot train, 64 can.
  using enum PlanDimension;
  PlanDimensions chosen = PlanDimensions::all();
  for (const PlanDimension fixed : {context, offload, bucket, overlap, recompute, order, sequence_parallel}) {
    chosen.set(fixed, false);
  }
  const YamlNode document = training("node: gb200-nvl72, nodes: 1", 64);
  std::vector<PlanSpace> spaces;
  int most = 0;
  for (const MachineUse& use : machine_uses(document)) {
    YamlNode own = document;
    for (const std::string& change : use.overrides) apply_override(own, parse_override(change));
    try {
      spaces.emplace_back(own, "racks", chosen);
      most = std::max(most, use.used);
    } catch (const ScenarioError&) {
      CHECK(use.used == 72);
    }
  }
  CHECK(most == 64);
  const std::vector<PlanObjective> objectives(spaces.size());
  const PlanSearch search = search_plans(spaces, objectives, 5);
  std::vector<PlanCandidate> all;
  for (std::size_t space = 0; space < spaces.size(); ++space) {
    for (const PlanPoint& layout : spaces[space].layouts()) {
      const auto all_plans = LayoutEffort::enumerate;
      for (PlanCandidate candidate : search_layout(spaces[space], layout, PlanObjective{}, {}, 5, all_plans).best) {
        candidate.space = static_cast<int>(space);
        all.push_back(candidate);
      }
    }
  }
  std::sort(all.begin(), all.end());
  REQUIRE(search.best.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(search.best[i].value == all[i].value);
    CHECK(search.best[i].point == all[i].point);
  }
  CHECK(search.counts.exceeded == 0);
}

}  // namespace foretrain::test
