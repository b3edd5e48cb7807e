// The numbers of the source texts, by every executor: synchronisation on one machine (R10), parallel and overlapping
// work (R3, R4), data parallelism (R9), and the estimate against the simulation of whole steps.
#include <ctime>

#include "tests/sim/predicted.hpp"

using namespace foretrain;
using namespace foretrain::test;

TEST_CASE("R10: 160 MB on four GPUs behind a 16 GB/s PCIe switch") {
  // Three GPUs send 160 MB each through GPU 0's link, 3 · 160 MB / 16 GB/s = 30 ms, and receive it back: 60 ms.
  expect_milliseconds("sync-all-to-one-gpu", 60.0, 0.01);
  // All four go through the CPU's link: 4 · 160 MB / 16 GB/s = 40 ms each way.
  expect_milliseconds("sync-through-cpu", 80.0, 0.01);
  // Each GPU is server for a quarter: 3 · 40 MB / 16 GB/s = 7.5 ms each way.
  expect_milliseconds("sync-split-four-ways", 15.0, 0.01);
  // 2 · (4-1) phases of 40 MB at 16 GB/s.
  expect_milliseconds("sync-ring-4", 15.0, 0.01);
  // Binary heap 0 ← {1, 2}, 1 ← 3: levels of 10 and 20 ms up, 20 and 10 ms down.
  expect_milliseconds("sync-tree-4", 60.0, 0.01);
}

TEST_CASE("R10: 160 MB on eight V100 with the NVLink cube mesh take about 6 ms in a ring") {
  // One ring over the double links: 2 · 7/8 · 160 MB / (2 · 24.2 GB/s) = 5.79 ms, and 14 steps of some microseconds.
  for (const Fidelity fidelity : all_fidelities) {
    const double time = milliseconds("sync-ring-8-v100", fidelity);
    CHECK(time > 5.79);
    CHECK(time < 6.2);
  }
}

TEST_CASE("R10: the ring's time hardly depends on the number of ranks") {
  // 2 (n-1)/n · 160 MB / 16 GB/s: 17.5 ms for 8 ranks, 19.69 ms for 64, never more than 20 ms.
  expect_milliseconds("sync-ring-64-equal-links", 17.5, 0.01, {"workload.collective.ranks=8"});
  expect_milliseconds("sync-ring-64-equal-links", 19.6875, 0.01);
}

TEST_CASE("R3: fifty products take the notebooks' time on one GPU, and no longer on two") {
  // d2l_multi_gpu_summary.csv, pytorch: medians 0.4937 s (GPU 1), 0.4986 s (GPU 2), 0.4913 s (both); 15 % allowed.
  for (const Fidelity fidelity : all_fidelities) {
    const double one = milliseconds("parallel-matmul-one-gpu", fidelity);
    CHECK(one == Approx(493.7).epsilon(0.15));
    CHECK(milliseconds("parallel-matmul-two-gpus", fidelity) == Approx(one).epsilon(1e-9));
  }
}

TEST_CASE("R4: copies that overlap with compute lie between the longer of the two and their sum") {
  for (const Fidelity fidelity : all_fidelities) {
    const double compute = milliseconds("parallel-matmul-one-gpu", fidelity);
    const double blocking = milliseconds("overlap-copy-to-host", fidelity);
    const double serial = milliseconds("overlap-compute-then-copy", fidelity);
    const double overlapped = milliseconds("overlap-compute-and-copy", fidelity);
    // Measured medians: copies alone 2.347 s, overlapped 1.670 s.
    CHECK(blocking == Approx(2346.9).epsilon(0.15));
    CHECK(serial == Approx(compute + blocking).epsilon(1e-9));
    CHECK(overlapped == Approx(1669.9).epsilon(0.15));
    CHECK(overlapped > compute);
    CHECK(overlapped < serial);
  }
}

TEST_CASE("R9: LeNet gains nothing from a second GPU, ResNet-18 nearly doubles") {
  const auto epoch_seconds = [](const std::string& scenario, double batch) {
    return milliseconds(scenario, Fidelity::flows) * 1e-3 * 60000.0 / batch;
  };
  const double lenet_one = epoch_seconds("data-parallel-lenet-one-gpu", 256);
  const double lenet_two = epoch_seconds("data-parallel-lenet-two-gpus", 256);
  const double resnet_one = epoch_seconds("data-parallel-resnet18-one-gpu", 256);
  const double resnet_two = epoch_seconds("data-parallel-resnet18-two-gpus", 512);
  // Seconds per epoch of 60,000 images, pytorch medians, 25 % allowed.
  CHECK(lenet_one == Approx(2.5).epsilon(0.25));
  CHECK(lenet_two == Approx(2.6).epsilon(0.25));
  CHECK(resnet_one == Approx(14.0).epsilon(0.25));
  CHECK(resnet_two == Approx(9.1).epsilon(0.25));
  CHECK(lenet_two > 0.95 * lenet_one);
  CHECK(resnet_two < 0.75 * resnet_one);
}

TEST_CASE("without contention the simulation of a step equals its estimate") {
  const std::vector<std::pair<std::string, Overrides>> scenarios = {
      {"data-parallel-resnet18-two-gpus", {}},
      {"gpt3-175b-1024-a100", {}},
      {"gpt3-175b-1024-a100", {"plan.interleave=2"}},
      {"gpt3-175b-1024-a100", {"plan.zero=1"}},
      {"fit-offload-optimizer", {}},
      {"fit-offload-optimizer", {"plan.offload=[parameters, activations]"}},
      {"fit-fsdp-llama3-8b", {"plan.reshard_after_forward=false"}},
      {"gpt3-175b-1024-a100",
       {"workload.train.model.preset=gpt3-13b", "cluster.nodes=4", "plan.tensor=1", "plan.pipeline=1", "plan.data=32",
        "plan.zero=3", "workload.train.global_batch=128"}},
  };
  for (const auto& [scenario, overrides] : scenarios) {
    const Scenario loaded = load_scenario(scenario, overrides);
    const double estimate = predict(loaded, Fidelity::estimate).time().value();
    const double flows = predict(loaded, Fidelity::flows).time().value();
    INFO(scenario << (overrides.empty() ? "" : " " + overrides.front()));
    CHECK(flows == Approx(estimate).epsilon(0.01));
  }
}

TEST_CASE("Every step of a million ranks is refused with the reason, not begun") {
  const char* const ring = R"(
name: million
cluster: { node: dgx-h100, nodes: 125000, nccl: none }
workload: { collective: { operation: all_reduce, size: 1 GB } }
plan: { sync: { algorithm: ring } }
)";
  const Scenario scenario = load_scenario_text(ring, "million.yaml");
  // Without a library a ring of n ranks is 2 (n - 1) steps of n messages.
  CHECK_THROWS_WITH(predict(scenario, Fidelity::steps),
                    Catch::Contains("would simulate 2e+12 messages") && Catch::Contains("--fidelity flows"));
}

TEST_CASE("Steps over drawn routes are refused before any route is drawn") {
  const Scenario scenario =
      load_scenario("deepseek-v3-2048-h100",
                    {"cluster.network.fabric={ kind: fat_tree, nodes_per_leaf: 16, uplinks: 64, routing: hash }"});
  const std::clock_t begun = std::clock();
  CHECK_THROWS_WITH(predict(scenario, Fidelity::steps), Catch::Contains("would simulate 5.2e+07 messages"));
  CHECK(std::clock() - begun < 5 * CLOCKS_PER_SEC);  // forty draws take ten seconds and more
}
