// Algorithms that are laid over the hardware: several rings, levels, switches, servers. Expected times are worked out
// by hand from bytes over bandwidth.
#include "model/collectives/network_effects.hpp"
#include "model/collectives/node_rings.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/calls.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/collectives/rows.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

TEST_CASE("multi-ring uses all lanes of a V100 in a cube mesh, and all cards between nodes") {
  const Topology topology(cluster_of(dgx1_node()));
  // Rings of double and of single lanes, both ways: 6 lanes of 25 GB/s leave each GPU. 14 steps of 20 MB at 150 GB/s.
  CHECK(milliseconds(SyncAlgorithm::multi_ring, 160.0_MB, iota(8), topology) == Approx(14 * 20.0 / 150.0));
  // Every NVLink is as busy as every other, for its width.
  const LoweredCollective lowered =
      lower(call_of(SyncAlgorithm::multi_ring, 160.0_MB, iota(8)), topology, Calibration{});
  const auto on_links = loads(lowered.phases.front(), topology);
  CHECK(on_links.size() == 32);  // 16 pairs, both ways
  for (const auto& [link, bytes] : on_links) {
    CHECK(bytes / topology.link_bandwidth(link).value() == Approx(14 * 20e6 / 150e9));
  }
  // NVSwitch nodes with a card of 25 GB/s for every GPU: 2·15/16·800 MB at 200 GB/s; a single ring uses one card. DGX-1
  // with four cards of 12.5 GB/s, two GPUs at each: 50 GB/s.
  const Topology switched(cluster_of(nvswitch_node(), 2)), mesh(cluster_of(dgx1_node(), 2));
  CHECK(milliseconds(SyncAlgorithm::multi_ring, 800.0_MB, iota(16), switched) == Approx(7.5).epsilon(0.03));
  CHECK(milliseconds(SyncAlgorithm::ring, 800.0_MB, iota(16), switched) == Approx(60.0).epsilon(0.01));
  CHECK(milliseconds(SyncAlgorithm::multi_ring, 800.0_MB, iota(16), mesh) == Approx(30.0).epsilon(0.03));
}

TEST_CASE("a ring's repeated phase waits for the longest way over so many hops") {
  // Four nodes on two leaves, half a microsecond a switch, 5 us beside them: hops of 5.5 and 6.5 us in turn. Three hops
  // take 18.5 us where they begin with a long one, seven a lap of 24 us more.
  Cluster cluster = cluster_of(nvswitch_node(), 4);
  cluster.network.fabric.shape = FatTree{2, 0, 1.0, 1.0, false};
  cluster.network.fabric.switch_latency = 0.5_us;
  const Topology topology(cluster);
  const auto latency = [&](int repeat) {
    LoweredCollective::Phase phase{6.5_us, {}, repeat};
    for (const int rank : {0, 8, 16, 24}) phase.flows.push_back({rank, (rank + 8) % 32, 1.0_MB});
    average_ring_latency(phase, topology);
    return phase.latency.value() * 1e6;
  };
  CHECK(latency(1) == Approx(6.5));
  CHECK(latency(3) == Approx(18.5 / 3));
  CHECK(latency(7) == Approx((24.0 + 18.5) / 7));
}

TEST_CASE("levels go round the NVLink rings inside nodes, whatever the order in which ranks are named") {
  const Topology one(cluster_of(dgx1_node())), two(cluster_of(dgx1_node(), 2));
  // Eight GPUs of a cube mesh in the order of their numbers would pass PCIe. A ring through double lanes: 50 GB/s.
  for (const auto operation : {CollectiveOperation::all_gather, CollectiveOperation::reduce_scatter}) {
    CHECK(milliseconds(SyncAlgorithm::hierarchical, 800.0_MB, iota(8), one, operation) ==
          Approx(7.0 / 8.0 * 800.0 / 50.0).epsilon(0.01));
  }
  std::vector<int> mixed;
  for (int i = 0; i < 8; ++i) mixed.push_back(i), mixed.push_back(8 + i);
  for (const auto operation : {CollectiveOperation::all_gather, CollectiveOperation::all_to_all}) {
    CHECK(milliseconds(SyncAlgorithm::hierarchical, 800.0_MB, mixed, two, operation) ==
          Approx(milliseconds(SyncAlgorithm::hierarchical, 800.0_MB, iota(16), two, operation)));
  }
}

TEST_CASE("hierarchical reduce-scatter, all-gather and all-to-all use all cards") {
  const Topology topology(cluster_of(nvswitch_node(), 2));
  const auto time = [&](CollectiveOperation operation) {
    return milliseconds(SyncAlgorithm::hierarchical, 800.0_MB, iota(16), topology, operation);
  };
  // 7/8·800 MB at 300 GB/s inside, 1/2·100 MB at 25 GB/s between.
  const double half = 7.0 / 8.0 * 800.0 / 300.0;
  CHECK(time(CollectiveOperation::reduce_scatter) == Approx(half + 2.0).epsilon(0.01));
  CHECK(time(CollectiveOperation::all_gather) == Approx(half + 2.0).epsilon(0.01));
  // Each rank hands 7/8 of its buffer to neighbours, then sends half of what it has through its card: 16 ms. Pair by
  // pair it is the same half of its own buffer.
  CHECK(time(CollectiveOperation::all_to_all) == Approx(half + 16.0).epsilon(0.01));
}

TEST_CASE("levels must fit the ranks and the nodes") {
  const Topology topology(cluster_of(nvswitch_node(), 4));
  CollectiveCall call = call_of(SyncAlgorithm::hierarchical, 1.0_MB, iota(32));
  for (const auto& [levels, complaint] :
       {std::pair(std::vector<int>{3}, "cut through nodes of 8"),
        std::pair(std::vector<int>{2, 3}, "cut through nodes"), std::pair(std::vector<int>{8, 3}, "cannot be cut"),
        std::pair(std::vector<int>{8, 8}, "cannot be cut")}) {
    call.levels = levels;
    CHECK_THROWS_WITH(lower(call, topology, Calibration{}), Catch::Contains(complaint));
  }
}

TEST_CASE("messages that do not divide, that are smaller than their chunks, or empty") {
  // Runs count every chunk as large as the largest: at most one byte per chunk and phase more than the schedule moves.
  const Topology topology(cluster_of(nvswitch_node(), 2));
  for (const AlgorithmRow& row : algorithm_table()) {
    double previous = -1.0;
    for (const double bytes : {0.0, 1.0, 5.0, 1000.0, 1003.0, 1'000'003.0}) {
      CollectiveCall call = call_of(row.algorithm, Bytes(bytes), iota(16), row.operation);
      call.servers = 3;
      const LoweredCollective lowered = lower(call, topology, Calibration{});
      const double time = uncontended_time(lowered, topology).value();
      INFO(name(row.algorithm) << " operation " << static_cast<int>(row.operation) << ", " << bytes << " B");
      CHECK(std::isfinite(time));
      CHECK(time >= previous);
      previous = time;
      for (const LoweredCollective::Phase& phase : lowered.phases) {
        for (const Flow& flow : phase.flows)
          CHECK((flow.bytes >= Bytes(0.0) && flow.bytes <= Bytes(16.0 * std::max(bytes, 64.0))));
      }
    }
  }
}

TEST_CASE("groups of different shapes are lowered together") {
  // Ranks 0-3 on one node, 4-7 and 8-11 across two: one group inside a node, one of two and two.
  const Topology topology(cluster_of(nvswitch_node(), 2));
  CollectiveCall call = call_of(SyncAlgorithm::hierarchical, 300.0_MB, {});
  call.groups = {{0, 1, 2, 3}, {6, 7, 8, 9}};
  // The second decides: 2·1/2·300 MB at 300 GB/s inside its pairs, 2·1/2·150 MB at 25 GB/s between them. The first
  // group's six steps of 75 MB at 300 GB/s begin beside the same phases: 0.25 ms for the first, which the second's
  // 0.5 ms cover, five more beside the exchange between nodes.
  CHECK(milliseconds(call, topology) == Approx(1.0 + 6.0).epsilon(0.1));
}

TEST_CASE("16,384 ranks are lowered and added up") {
  // 2,048 nodes of 8 GPUs with a card of 25 GB/s each. Two levels: each GPU's eighth of the gigabyte goes round a ring
  // of 2,048: 2·2047/2048·1/8 GB at 25 GB/s between nodes, 2·7/8·1 GB at 300 GB/s inside.
  const Topology topology(cluster_of(nvswitch_node(), 2048));
  const auto time = [&](SyncAlgorithm algorithm, CollectiveOperation operation) {
    return milliseconds(algorithm, 1.0_GB, iota(16384), topology, operation);
  };
  using enum CollectiveOperation;
  const double bulk = 1e3 * (2.0 * 2047 / 2048 / 8 / 25.0 + 2.0 * 7 / 8 / 300.0);
  CHECK(time(SyncAlgorithm::hierarchical, all_reduce) >= bulk * (1 - 1e-9));
  CHECK(time(SyncAlgorithm::hierarchical, all_reduce) < time(SyncAlgorithm::ring, all_reduce));
  CHECK(time(SyncAlgorithm::hierarchical, all_to_all) > 0.0);
  CHECK(time(SyncAlgorithm::naive, all_to_all) > 0.0);
}

TEST_CASE("links that are nearly broken take no time to find rings over, and cost no more than having none") {
  // Rings go where the healthy lanes are, however thin the broken one is.
  double before = std::numeric_limits<double>::infinity();
  for (const BytesPerSecond left : {BytesPerSecond(1e3), BytesPerSecond(1e6), BytesPerSecond(1e9)}) {
    Cluster cluster = cluster_of(dgx1_node());
    cluster.faults = {{.node = 0, .link = "gpu0>gpu1", .bandwidth = left}};
    const Topology topology(cluster);
    CHECK(node_rings(topology, iota(8)).size() <= 64);
    const double time = milliseconds(SyncAlgorithm::multi_ring, 160.0_MB, iota(8), topology);
    CHECK(time < 14 * (20.0 / 50.0 + 0.001));  // a third of the lanes would do
    CHECK(time <= before);
    before = time * 1.0001;
  }
}
