// R10: what every algorithm takes on one machine and between machines, by every executor. Expected times are bytes over
// bandwidth from the hardware's files: NVLink2 24.2 GB/s a lane, A100 12 · 23 = 276 GB/s and a card of 23.25 GB/s a
// GPU, H100 18 · 21 = 378 GB/s and 48.5 GB/s.
#include "model/base/error.hpp"
#include "tests/complaint.hpp"
#include "tests/sim/predicted.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

std::string complaint(const std::string& scenario, const Overrides& overrides) {
  return complaint_of([&] { predicted(scenario, Fidelity::estimate, overrides); });
}

}  // namespace

TEST_CASE("R10: algorithms on four GPUs behind a 16 GB/s PCIe switch") {
  // Halving-doubling moves 2 · (1/2 + 1/4) of the message, pairwise exchange 2 · 3 quarters: the ring's bytes.
  expect_on_wires("sync-halving-doubling-4", 15.0, 0.001);
  expect_on_wires("sync-pairwise-4", 15.0, 0.001);
  // Double tree: GPUs 1 and 2 take and give four halves, 20 ms; 19 phases instead of 16 with less to do in the ramp.
  for (const Fidelity fidelity : all_fidelities) {
    const double time = on_wires("sync-double-tree-4", fidelity);
    CHECK(time >= 20.0);
    CHECK(time <= 20.0 * 19.0 / 16.0);
  }
}

TEST_CASE("R10: eight V100 with the NVLink cube mesh") {
  // 14 steps of 20 MB: half of it each way over double links (48.4 GB/s), 2 µs a step; or spread over all six lanes.
  expect_on_wires("sync-bidirectional-ring-8-v100", 14 * (10.0 / 48.4 + 0.002), 0.001);
  expect_on_wires("sync-multi-ring-8-v100", 14 * 20.0 / (6 * 24.2), 0.001);
}

TEST_CASE("R10: four DGX A100: rings over all cards, levels") {
  // Eight rings over eight cards, 6 steps of 5 µs between nodes.
  expect_on_wires("sync-multi-ring-32-a100", 2.0 * 31 / 32 * 800 / (8 * 23.25) + 6 * 0.005, 0.001);
  const double inside = 2.0 * 7 / 8 * 800 / 276, between = 2.0 * 3 / 4 * 100 / 23.25 + 6 * 0.005;
  expect_on_wires("sync-hierarchical-32-a100", inside + between + 14 * 0.0024, 0.001);
  expect_on_wires("sync-three-levels-32-a100", inside + between + 8 * 0.0024, 0.001);
}

TEST_CASE("R10: switches that add up") {
  // A port takes the message and gives an eighth of it, 9/8 · 800 MB at 378 GB/s = 2.38 ms. A card's 100 MB between
  // nodes take 2.06 ms at the same time, and 5 µs to the network's switches and back.
  expect_on_wires("sync-in-network-8-h100", 9.0 / 8 * 800 / 378, 0.001);
  expect_on_wires("sync-in-network-32-h100", 9.0 / 8 * 800 / 378 + 2 * 0.005, 0.001);
  // The time hardly depends on the number of nodes, where a ring's steps grow with it.
  const double sixteen =
      on_wires("sync-in-network-32-h100", Fidelity::estimate, {"cluster.nodes=16", "workload.collective.ranks=128"});
  CHECK(sixteen == Approx(on_wires("sync-in-network-32-h100", Fidelity::estimate)).epsilon(0.01));
}

TEST_CASE("R10: the machine first, then one push and one pull") {
  // 2 · 3/4 · 160 MB at 16 GB/s inside; two messages through the server's card each way. Flat: eight each way.
  expect_on_wires("sync-machine-first-servers", 15.0 + 2 * 20.0, 0.001);
  CHECK(on_wires("sync-machine-first-servers", Fidelity::flows, {"workload.collective.algorithm=parameter_server"}) ==
        Approx(2 * 80.0).epsilon(0.001));
}

TEST_CASE("R10: an all-to-all over 512 ranks") {
  // 504 of a rank's 511 messages of 1 MB leave its node through its card.
  expect_on_wires("sync-all-to-all-512", 504 / 23.25 + 0.005, 0.001);
}

TEST_CASE("R10: what cannot be done is said, with the place in the scenario") {
  const auto says = [](const std::string& text, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      INFO(text);
      CHECK(text.find(word) != std::string::npos);
    }
  };
  says(complaint("sync-ring-8-v100", {"workload.collective.algorithm=in_network"}),
       {"workload.collective.algorithm", "NVLink SHARP"});
  says(complaint("sync-multi-ring-32-a100", {"workload.collective.algorithm=in_network"}),
       {"workload.collective.algorithm", "in_network_reduction: true"});
  says(complaint("sync-hierarchical-32-a100", {"workload.collective.ranks=20"}),
       {"sync-hierarchical-32-a100.yaml:5:", "node 0 has 8, node 2 has 4"});
  says(complaint("sync-three-levels-32-a100", {"workload.collective.levels=[3]"}), {"groups of 3 ranks cut through"});
  says(complaint("sync-tree-4", {"workload.collective.operation=all_to_all"}),
       {"sync-tree-4.yaml:5:", "naive, ring, hierarchical, pairwise"});
  says(complaint("sync-machine-first-servers", {"workload.collective.servers=2"}),
       {"2 dedicated parameter servers on 1 nodes"});
  says(complaint("sync-machine-first-servers", {"workload.collective.servers=0"}), {"workload.collective.servers"});
}
