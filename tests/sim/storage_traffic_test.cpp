// Storage traffic over the NICs that training uses.
#include "model/collectives/contention.hpp"
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Two machines that exchange gradients after the backward pass, and a server that takes 40 GB/s.
constexpr const char* training = R"(
cluster:
  node: dgx-a100-80gb
  nodes: 2
  network: { nic_bandwidth: 200 Gbit/s, nics_per_node: 8, efficiency: 1 }
workload:
  train:
    model: { family: gpt, layers: 8, hidden: 4096, heads: 32, vocabulary: 51200, sequence: 2048 }
    global_batch: 16
    micro_batch: 1
    checkpoint:
      every: 100
      storage: { kind: network, read_bandwidth: 40 GB/s, write_bandwidth: 40 GB/s, random_read_iops: 100000, random_write_iops: 100000, read_latency: 100 us, round_trip: 100 us }
plan: { sync: { overlap: false } }
)";

constexpr const char* of_checkpoint = "workload.train.checkpoint.";

TrainResult trained(std::vector<std::string> overrides, Fidelity fidelity = Fidelity::flows) {
  return *predict(load_scenario_text(training, "test.yaml", overrides), fidelity).train();
}

std::string checkpoint(const std::string& key) { return of_checkpoint + key; }

}  // namespace

TEST_CASE("A write to a server takes its bandwidth from the card, on the way out alone") {
  const Scenario scenario = load_scenario_text(training, "test.yaml", {});
  const Topology topology(scenario.cluster);
  const auto time = [&](int from, int to, const std::vector<BackgroundFlow>& beside) {
    LoweredCollective::Phase phase{Seconds(0.0), {{from, to, Bytes(25e6)}}, 1};
    return uncontended_time({"message", {std::move(phase)}}, topology, beside).value();
  };
  using Place = BackgroundFlow::Place;
  const auto write = [](int gpu) {
    return BackgroundFlow{
        {Place::Kind::memory_of_gpu, gpu, 0}, {Place::Kind::outside, gpu, 0}, BytesPerSecond(5e9), {}};
  };
  // 25 MB at 25 GB/s; at the 20 GB/s that a write of 5 leaves on the same card, which other cards do not feel.
  CHECK(time(0, 8, {}) == Approx(1e-3));
  std::vector<double> beside;
  for (int gpu = 0; gpu < 8; ++gpu) beside.push_back(time(gpu, 8 + gpu, {write(0)}));
  std::ranges::sort(beside);
  CHECK(beside.back() == Approx(1.25e-3));
  CHECK(beside[6] == Approx(1e-3));
  for (int gpu = 0; gpu < 8; ++gpu) CHECK(time(8 + gpu, gpu, {write(0)}) == Approx(1e-3));
}

TEST_CASE("Checkpoints to a server slow the steps beside their write, unless machines reach it by other cards") {
  const std::string separate = checkpoint("storage.network=separate");
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const TrainResult shared = trained({}, fidelity), apart = trained({separate}, fidelity);
    CHECK(shared.step_time == apart.step_time);
    CHECK(apart.checkpoints->beside_write == apart.step_time);
    CHECK(shared.checkpoints->beside_write > shared.step_time);
    // 20 GB/s a machine, 2.5 of each card's 25: what is exchanged between machines takes 1.11 times as long, or more
    // where fewer cards carry the write. The rest of the step as long as before.
    const Seconds more = shared.checkpoints->beside_write - shared.step_time;
    CHECK(more < shared.breakdown.exposed_communication * 0.7);
    // A write of W slows W · (1 − 1/b) of every hundred steps.
    const double b = shared.checkpoints->beside_write / shared.step_time;
    const Seconds lost = shared.checkpoints->write * ((1.0 - 1.0 / b) / 100.0);
    CHECK((shared.checkpoints->mean_step_time - apart.checkpoints->mean_step_time).value() ==
          Approx(lost.value()).epsilon(1e-6));
  }
}

TEST_CASE("Copies into the next machine's memory meet training; a checkpoint that training waits for meets nothing") {
  const TrainResult in_memory = trained({checkpoint("mode=in_memory")});
  CHECK(in_memory.checkpoints->beside_write > in_memory.step_time);
  const TrainResult waits = trained({checkpoint("mode=synchronous")});
  CHECK(waits.checkpoints->beside_write == waits.step_time);
  const TrainResult local = trained({checkpoint("storage=nvme-pcie4")});
  CHECK(local.checkpoints->beside_write == local.step_time);
}

TEST_CASE("What a loader reads from a server is on the cards in every step") {
  const std::string loader =
      "workload.train.loader={ workers: 8, decode: 1 us, dataset: { samples: 100000000, sample: 200 MB }, storage: { "
      "kind: network, "
      "read_bandwidth: 400 GB/s, random_read_iops: 1000000, read_latency: 100 us, round_trip: 100 us, network: ";
  const auto step = [&](const char* network) { return trained({loader + network + " } }"}).breakdown; };
  const Breakdown shared = step("shared"), separate = step("separate");
  CHECK(shared.exposed_communication > separate.exposed_communication * 1.001);
  CHECK(shared.compute == separate.compute);
}
