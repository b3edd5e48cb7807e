// Reading of failures, recovery, prices and electricity.
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Scenario scenario_of(const std::string& cluster, const std::string& train = "") {
  return load_scenario_text("cluster: { nodes: 2, " + cluster + " }\n" +
                                "workload: { train: { model: gpt2, micro_batch: 1, checkpoint: { every: 10 }" + train +
                                " } }\n",
                            "test.yaml");
}

Seconds mtbf_of(const Scenario& scenario, FailingPart part) {
  return scenario.cluster.failures->mtbf[static_cast<std::size_t>(part)];
}

}  // namespace

TEST_CASE("failure rates: a table's, others beside it, times and rates") {
  const Scenario preset = scenario_of("node: dgx-h100, failures: llama3-h100");
  CHECK(mtbf_of(preset, FailingPart::gpu).value() == Approx(79200.0 * 3600.0));
  CHECK_FALSE(is_finite(mtbf_of(preset, FailingPart::fabric_switch)));
  // 268 failures of GPUs in 54 days of 16,384; 419 of all, by the counts of each.
  const double hours = 54.0 * 24.0;
  double failures = 0.0;
  const double counts[] = {16384.0, 2048.0, 16384.0, 16384.0, 0.0, 2048.0};
  for (std::size_t part = 0; part < failing_parts; ++part) {
    const Seconds mtbf = preset.cluster.failures->mtbf[part];
    if (is_finite(mtbf)) failures += counts[part] * hours * 3600.0 / mtbf.value();
  }
  CHECK(failures == Approx(419.0).epsilon(0.002));

  const Scenario own = scenario_of(
      "node: dgx-h100, failures: { preset: llama3-h100, gpu: 1e-4 /hour, switch: 500 h, "
      "switches: 3, seed: 7 }");
  CHECK(mtbf_of(own, FailingPart::gpu).value() == Approx(1e4 * 3600.0));
  CHECK(mtbf_of(own, FailingPart::nic) == mtbf_of(preset, FailingPart::nic));
  CHECK(own.cluster.failures->switches == 3);
  CHECK(own.cluster.failures->seed == 7);
}

TEST_CASE("GPUs that become slow: how often, how slow, and when it is noticed") {
  const Scenario scenario = scenario_of(
      "node: dgx-h100, failures: { preset: llama3-h100, stragglers: { gpu: 1000 h, speed: 80 %, noticed: 30 min } }");
  const auto& stragglers = *scenario.cluster.failures->stragglers;
  CHECK(stragglers.mtbf.value() == Approx(1000.0 * 3600.0));
  CHECK(stragglers.speed == Approx(0.8));
  CHECK(stragglers.noticed.value() == Approx(1800.0));
}

TEST_CASE("a recovery is the table's where it is not stated") {
  const auto recovery_of = [](const Scenario& s) { return *std::get<TrainWorkload>(s.workload).recovery; };
  const Recovery usual = recovery_of(scenario_of("node: dgx-h100, failures: llama3-h100"));
  CHECK(usual.heartbeat == Seconds(5.0));
  CHECK(usual.missed == 3);
  CHECK(usual.initialise.value() == Approx(16 * 3e-3));  // for each of 16 GPUs
  CHECK_FALSE(usual.spares);
  CHECK(usual.constants.size() == 5);
  const Recovery own = recovery_of(
      scenario_of("node: dgx-h100, failures: llama3-h100", ", recovery: { spares: 2, initialise: 20 s, missed: 1 }"));
  CHECK(own.spares == 2);
  CHECK(own.initialise == Seconds(20.0));
  CHECK(own.missed == 1);
}

TEST_CASE("prices by GPU, by machine, and of the table") {
  CHECK(scenario_of("node: dgx-h100, price: 2.5 USD/GPU/hour").cluster.usd_per_gpu_hour == 2.5);
  CHECK(scenario_of("node: dgx-h100, price: 98 USD/node/hour").cluster.usd_per_gpu_hour == Approx(98.0 / 8.0));
  const Scenario listed = scenario_of("node: p5.48xlarge, price: capacity_block");
  CHECK(listed.cluster.usd_per_gpu_hour == Approx(39.33 / 8.0));
  REQUIRE(listed.cluster.price_constants.size() == 1);
  CHECK(listed.cluster.price_constants[0].source.find("2024-12") != std::string::npos);
  // Others of the same kind, for machines that have no price.
  CHECK(scenario_of("node: dgx-h100, price: { of: p5.48xlarge, purchase: capacity_block }").cluster.usd_per_gpu_hour ==
        Approx(39.33 / 8.0));
}

TEST_CASE("electricity: a grid, a data centre, the rest of the machines") {
  const Energy france = *scenario_of("node: dgx-h100, energy: france").cluster.energy;
  CHECK(france.grams_per_kwh == 56.0);
  CHECK(france.pue == Approx(1.56));
  // Two machines of 10.2 kW at most, of which eight boards of 700 W each.
  CHECK(france.rest_watts == Approx(2.0 * (10200.0 - 8.0 * 700.0)));
  const Energy own =
      *scenario_of("node: dgx-h100, energy: { grid: 100 g/kWh, pue: 1.1, machine: 8 kW }").cluster.energy;
  CHECK(own.grams_per_kwh == 100.0);
  CHECK(own.pue == 1.1);
  CHECK(own.rest_watts == Approx(2.0 * (8000.0 - 8.0 * 700.0)));
}

TEST_CASE("A checkpoint outlives machines: what nobody states does, and a machine's disks are refused where it fails") {
  const auto scenario = [](const std::string& failures, const std::string& checkpoint) {
    return load_scenario_text("cluster: { node: dgx-h100, nodes: 2" + failures +
                                  " }\nworkload: { train: { model: gpt2, micro_batch: 1, checkpoint: " + checkpoint +
                                  " } }\n",
                              "saved.yaml");
  };
  const auto storage_of = [&](const std::string& failures, const std::string& checkpoint) {
    return std::get<TrainWorkload>(scenario(failures, checkpoint).workload).checkpoint->storage;
  };
  // With failures or without: the same default.
  for (const char* failures : {"", ", failures: { node: 500 h }"}) {
    const Storage usual = storage_of(failures, "{ every: 10 }");
    CHECK(usual.kind == StorageKind::network);
    CHECK(usual.name == "object store behind 100 Gbit/s");
  }
  CHECK(storage_of("", "{ every: 10, storage: node }").kind == StorageKind::flash);
  // Software that fails leaves the disks; a machine or a GPU takes them away, and memory of the next one has the state.
  CHECK(storage_of(", failures: { software: 500 h }", "{ every: 10, storage: node }").kind == StorageKind::flash);
  for (const char* part : {"node", "gpu"}) {
    const std::string failures = std::string(", failures: { ") + part + ": 500 h }";
    for (const char* disks : {"node", "nvme-pcie4", "hdd-7200"}) {
      CHECK_THROWS_WITH(scenario(failures, std::string("{ every: auto, storage: ") + disks + " }"),
                        Catch::Contains("workload.train.checkpoint.storage") && Catch::Contains("lost with them"));
    }
    CHECK_NOTHROW(scenario(failures, "{ every: auto, mode: in_memory }"));
  }
}
