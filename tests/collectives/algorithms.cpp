// Algorithms that are laid over the hardware: several rings, levels, switches, servers. Expected times are worked out
// by hand from bytes over bandwidth.
#include "model/collectives/network_effects.hpp"
#include "model/collectives/rings.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/calls.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/collectives/rows.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

Cluster reducing_cluster(int nodes) {
  Node node = nvswitch_node();
  node.link_types[0].in_network_reduction = true;
  node.network.in_network_reduction = true;
  return cluster_of(node, nodes);
}

/// Four GPUs behind a PCIe switch of 16 GB/s, with one card of 10 GB/s.
Cluster one_card_cluster(int nodes) {
  Node node = pcie_switch_node(4);
  node.nic_attachment = {5};
  node.nic_attachment_link = node.link_types[0];
  node.network = {1, 80.0_Gbitps, 1.0, 0.0_s, 1.0, true};
  return cluster_of(node, nodes);
}

}  // namespace

TEST_CASE("multi-ring uses all six NVLink lanes of a V100 in a cube mesh") {
  const Topology topology(cluster_of(dgx1_node()));
  // Rings of double and of single lanes, both ways: 6 lanes of 25 GB/s leave each GPU. 14 steps of 20 MB at 150 GB/s,
  // a microsecond each.
  CHECK(milliseconds(SyncAlgorithm::multi_ring, 160.0_MB, iota(8), topology) == Approx(14 * (20.0 / 150.0 + 0.001)));
  // Every NVLink is as busy as every other, for its width.
  const LoweredCollective lowered =
      lower(call_of(SyncAlgorithm::multi_ring, 160.0_MB, iota(8)), topology, Calibration{});
  REQUIRE(lowered.phases.size() == 1);
  const auto on_links = loads(lowered.phases.front(), topology);
  CHECK(on_links.size() == 32);  // 16 pairs, both ways
  for (const auto& [link, bytes] : on_links) {
    CHECK(bytes / topology.link_bandwidth(link).value() == Approx(14 * 20e6 / 150e9));
  }
}

TEST_CASE("multi-ring between nodes: one ring for every card, which it enters and leaves by") {
  const Bytes size = 800.0_MB;
  // NVSwitch nodes with a card of 25 GB/s for every GPU: 2·15/16·800 MB at 200 GB/s; a single ring uses one card.
  const Topology switched(cluster_of(nvswitch_node(), 2));
  CHECK(multi_rings(iota(16), switched).size() == 8);
  CHECK(milliseconds(SyncAlgorithm::multi_ring, size, iota(16), switched) == Approx(7.5).epsilon(0.03));
  CHECK(milliseconds(SyncAlgorithm::ring, size, iota(16), switched) == Approx(60.0).epsilon(0.01));
  // DGX-1 with four cards of 12.5 GB/s, two GPUs at each: 50 GB/s.
  const Topology mesh(cluster_of(dgx1_node(), 2));
  CHECK(milliseconds(SyncAlgorithm::multi_ring, size, iota(16), mesh) == Approx(30.0).epsilon(0.03));
  for (const Topology* topology : {&switched, &mesh}) {
    const LoweredCollective lowered =
        lower(call_of(SyncAlgorithm::multi_ring, size, iota(16)), *topology, Calibration{});
    const auto on_links = loads(lowered.phases.front(), *topology);
    std::vector<double> cards;
    for (const auto& [link, bytes] : on_links) {
      if (topology->link_kind(link) == LinkKind::network) cards.push_back(bytes);
    }
    // All cards of both nodes, in and out, carry the same.
    CHECK(cards.size() == (topology == &switched ? 32 : 16));
    for (const double bytes : cards) CHECK(bytes == Approx(cards.front()));
  }
  // One rank per node: one ring.
  CHECK(multi_rings({3, 11}, switched).size() == 1);
}

TEST_CASE("two GPUs at one card: each ring passes a node by one way for each card") {
  // The cube mesh has a ring of double and one of single lanes, both ways: four, each by four cards, in 16 orders.
  const Topology mesh(cluster_of(dgx1_node(), 2));
  const std::vector<ScheduleShape::Ring> rings = multi_rings(iota(16), mesh);
  CHECK(rings.size() == 16);
  std::map<int, int> leaving;
  for (const ScheduleShape::Ring& ring : rings) ++leaving[mesh.card_of_gpu(ring.order[7])];
  CHECK(leaving.size() == 4);
  for (const auto& [card, ways] : leaving) CHECK(ways == 4);
}

TEST_CASE("rings carry their shares, whatever the number of ways that each has between nodes") {
  // Six GPUs, each with one NVLink to four others: two rings, both ways, a quarter of the message each. GPUs 0 to 3 are
  // at one card, 4 and 5 at one each: a ring in which 4 and 5 are neighbours has three ways, one for each card; in one
  // where both hand on to GPUs of the first card there are no three, and all six are used.
  Node node = bare_node("octahedron", 6, 1);
  node.link_types = {link_type("nvlink", LinkKind::nvlink, 25.0_GBps, 1.0_us),
                     link_type("pcie", LinkKind::pcie, 25.0_GBps, 1.0_us)};
  for (const auto& [a, b] : {std::pair(0, 4), {4, 1}, {1, 5}, {5, 2}, {2, 3}, {3, 0}})
    node.links.push_back({a, b, 0, 1});
  for (const auto& [a, b] : {std::pair(4, 5), {5, 0}, {0, 2}, {2, 1}, {1, 3}, {3, 4}})
    node.links.push_back({a, b, 0, 1});
  for (int card = 0; card < 3; ++card) {
    const int plx = add_vertex(node, "plx" + std::to_string(card), VertexKind::pcie_switch);
    for (int gpu = card == 0 ? 0 : 3 + card; gpu < 4 + card; ++gpu) node.links.push_back({gpu, plx, 1, 1});
    node.links.push_back({plx, 6, 1, 1});
    node.nic_attachment.push_back(plx);
  }
  node.nic_attachment_link = node.link_types[1];
  node.network = {3, 200.0_Gbitps, 1.0, 5.0_us, 1.0, true};
  struct Ways {
    int count = 0, weight = 0;
  };
  std::map<std::vector<int>, Ways> of_ring;  // by its order in the first node, from GPU 0
  for (const ScheduleShape::Ring& ring : multi_rings(iota(12), Topology(cluster_of(node, 2)))) {
    std::vector<int> order(ring.order.begin(), ring.order.begin() + 6);
    std::rotate(order.begin(), std::find(order.begin(), order.end(), 0), order.end());
    Ways& ways = of_ring[order];
    ++ways.count;
    ways.weight += ring.weight;
  }
  CHECK(of_ring.size() == 4);
  int three = 0;
  for (const auto& [order, ways] : of_ring) {
    const auto place = [&](int gpu) { return std::find(order.begin(), order.end(), gpu) - order.begin(); };
    const bool neighbours = std::abs(place(4) - place(5)) % 4 == 1;
    CHECK(ways.count == (neighbours ? 3 : 6));
    CHECK(ways.weight == of_ring.begin()->second.weight);
    three += ways.count == 3 ? 1 : 0;
  }
  CHECK(three == 2);
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

TEST_CASE("levels: the same bytes in fewer steps") {
  // Four nodes of eight on NVSwitch (300 GB/s), a card of 25 GB/s for each GPU, 800 MB. Two levels: 2·7/8·800 MB at
  // 300 GB/s and 2·3/4·100 MB at 25 GB/s. Three levels (fours, pairs of fours, nodes): 3/4 of the message in the fours
  // and 1/2 of the quarter between them are the same 7/8. 2·(7+3) steps become 2·(3+1+3).
  const Topology topology(cluster_of(nvswitch_node(), 4));
  CollectiveCall two = call_of(SyncAlgorithm::hierarchical, 800.0_MB, iota(32));
  CollectiveCall three = two;
  three.levels = {4, 2};
  const double inside = 2.0 * 7.0 / 8.0 * 800.0 / 300.0, between = 2.0 * 3.0 / 4.0 * 100.0 / 25.0;
  CHECK(milliseconds(two, topology) == Approx(inside + between + 14 * 0.002 + 6 * 0.005));
  CHECK(milliseconds(three, topology) == Approx(inside + between + 8 * 0.002 + 6 * 0.005));
  // A third level above the nodes: groups of two nodes. 1/2 of 100 MB inside them, 1/2 of 50 MB between, both ways.
  CollectiveCall above = two;
  above.levels = {8, 2};
  CHECK(milliseconds(above, topology) == Approx(inside + between + 14 * 0.002 + 4 * 0.005));
  // Zero bytes cost the steps.
  three.size = 0.0_B;
  CHECK(milliseconds(three, topology) == Approx(8 * 0.002 + 6 * 0.005));
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

TEST_CASE("hierarchical reduce-scatter, all-gather, broadcast and reduce use all cards") {
  const Topology topology(cluster_of(nvswitch_node(), 2));
  const auto time = [&](CollectiveOperation operation) {
    return milliseconds(SyncAlgorithm::hierarchical, 800.0_MB, iota(16), topology, operation);
  };
  // 7/8·800 MB at 300 GB/s inside, 1/2·100 MB at 25 GB/s between.
  const double half = 7.0 / 8.0 * 800.0 / 300.0;
  CHECK(time(CollectiveOperation::reduce_scatter) == Approx(half + 2.0).epsilon(0.01));
  CHECK(time(CollectiveOperation::all_gather) == Approx(half + 2.0).epsilon(0.01));
  // Rank 0 hands out 7/8 of the message, every rank sends its 100 MB over its own card, and gathers.
  CHECK(time(CollectiveOperation::broadcast) == Approx(2.0 * half + 4.0).epsilon(0.02));
  CHECK(time(CollectiveOperation::reduce) == Approx(2.0 * half + 4.0).epsilon(0.02));
  // Each rank hands 7/8 of its buffer to neighbours, then sends half of what it has through its card: 16 ms; pair by
  // pair it is the same half of its own buffer.
  CHECK(time(CollectiveOperation::all_to_all) == Approx(half + 16.0).epsilon(0.01));
}

TEST_CASE("leaders take groups of any size, at one card per node") {
  const Topology topology(cluster_of(nvswitch_node(), 3));
  std::vector<int> uneven = iota(20);  // 8 + 8 + 4
  // The leaders' ring: 2·2/3·750 MB at 25 GB/s = 40 ms. Chains of eight in 32 pieces inside: 38/32·750 MB at 300 GB/s,
  // there and back.
  CHECK(milliseconds(SyncAlgorithm::hierarchical_leader, 750.0_MB, uneven, topology) ==
        Approx(40.0 + 2.0 * 38.0 / 32.0 * 2.5).epsilon(0.01));
  CHECK_THROWS_WITH(lower(call_of(SyncAlgorithm::hierarchical, 1.0_MB, uneven), topology, Calibration{}),
                    Catch::Contains("node 0 has 8, node 2 has 4") && Catch::Contains("hierarchical_leader"));
}

TEST_CASE("pairwise exchange never shares a port") {
  // Eight ranks behind a PCIe switch: 7 phases of 20 MB at 16 GB/s, each way of an all-reduce.
  const Topology topology(cluster_of(pcie_switch_node(8)));
  CHECK(milliseconds(SyncAlgorithm::pairwise, 160.0_MB, iota(8), topology) == Approx(14 * (1.25 + 0.002)));
  CHECK(milliseconds(SyncAlgorithm::pairwise, 160.0_MB, iota(8), topology, CollectiveOperation::all_to_all) ==
        Approx(7 * (1.25 + 0.002)));
}

TEST_CASE("switches that add up: a port carries the message once, a card a share") {
  const Bytes size = 800.0_MB;
  const Topology one(reducing_cluster(1)), two(reducing_cluster(2));
  // Inside a node 9/8 of the message pass a port each way, in 64 pieces through four stages: 63 of them with the share
  // and four without, 1 µs (half of a route) each: (63·9/8 + 4)/64·800 MB at 300 GB/s.
  CHECK(milliseconds(SyncAlgorithm::in_network, size, iota(8), one) ==
        Approx((63.0 * 9.0 / 8.0 + 4.0) / 64.0 * 800.0 / 300.0 + 67 * 0.001));
  // Between two nodes 100 MB pass each card each way, 4 ms, while pieces before and after pass inside: within 10 %.
  CHECK(milliseconds(SyncAlgorithm::in_network, size, iota(16), two) == Approx(4.0).epsilon(0.1));
  CHECK(milliseconds(SyncAlgorithm::hierarchical, size, iota(16), two) == Approx(4.667 + 4.0).epsilon(0.02));
  // Half of an all-reduce: the message up and a share down.
  CHECK(milliseconds(SyncAlgorithm::in_network, size, iota(8), one, CollectiveOperation::reduce_scatter) ==
        Approx(800.0 / 300.0).epsilon(0.05));
  // Small messages go in one piece: four stages of 1 µs inside; two more of half the network's 5 µs between nodes.
  CHECK(milliseconds(SyncAlgorithm::in_network, 0.0_B, iota(8), one) == Approx(4 * 0.001));
  CHECK(milliseconds(SyncAlgorithm::in_network, 0.0_B, iota(16), two) == Approx(4 * 0.001 + 2 * 0.0025));
}

TEST_CASE("switches that cannot add up are not asked to") {
  CHECK_THROWS_WITH(
      lower(call_of(SyncAlgorithm::in_network, 1.0_MB, iota(8)), Topology(cluster_of(nvswitch_node())), Calibration{}),
      Catch::Contains("NVLink SHARP"));
  CHECK_THROWS_WITH(lower(call_of(SyncAlgorithm::in_network, 1.0_MB, iota(16)),
                          Topology(cluster_of(nvswitch_node(), 2)), Calibration{}),
                    Catch::Contains("; network: { in_network_reduction: true }"));
  // A network that can, between nodes that cannot: rings inside.
  Node node = nvswitch_node();
  node.network.in_network_reduction = true;
  const Topology mixed(cluster_of(node, 2));
  CHECK(milliseconds(SyncAlgorithm::in_network, 800.0_MB, iota(16), mixed) == Approx(4.667).epsilon(0.2));
}

TEST_CASE("the machine first: servers see one push and one pull per machine") {
  // Two machines of four workers with one card of 10 GB/s each, and a dedicated server on a third, 160 MB. Flat: the
  // server's card takes eight messages, 128 ms, and sends eight. Machine first: 2·3/4·160 MB at 16 GB/s inside, and two
  // messages through the server's card each way.
  const Topology topology(one_card_cluster(3));
  CollectiveCall flat = call_of(SyncAlgorithm::parameter_server, 160.0_MB, iota(8));
  flat.placement = ServerPlacement::dedicated;
  CollectiveCall first = flat;
  first.algorithm = SyncAlgorithm::hierarchical_parameter_server;
  CHECK(milliseconds(flat, topology) == Approx(256.0).epsilon(0.001));
  CHECK(milliseconds(first, topology) == Approx(15.0 + 64.0).epsilon(0.001));
  // Two servers on the first GPU of each machine. The first takes 80 MB from the other machine, by the card, in 8 ms;
  // the second as much, and 80 MB from two neighbours: 160 MB at 16 GB/s = 10 ms.
  CollectiveCall colocated = first;
  colocated.placement = ServerPlacement::colocated;
  colocated.servers = 2;
  CHECK(milliseconds(colocated, topology) == Approx(15.0 + 20.0).epsilon(0.001));
}

TEST_CASE("servers and machines must suit each other") {
  const Topology topology(one_card_cluster(3));
  CollectiveCall call = call_of(SyncAlgorithm::parameter_server, 1.0_MB, iota(8));
  call.placement = ServerPlacement::dedicated;
  call.servers = 2;
  CHECK_THROWS_WITH(lower(call, topology, Calibration{}), Catch::Contains("2 dedicated parameter servers on 1 nodes"));
  call.servers = 0;
  CHECK_THROWS_WITH(lower(call, topology, Calibration{}), Catch::Contains("at least one server"));
  CollectiveCall uneven = call_of(SyncAlgorithm::hierarchical_parameter_server, 1.0_MB, iota(6));
  CHECK_THROWS_WITH(lower(uneven, topology, Calibration{}), Catch::Contains("node 0 has 4, node 1 has 2"));
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

TEST_CASE("an operation that an algorithm has no form for names the algorithms that have one") {
  const Topology topology(cluster_of(pcie_switch_node(4)));
  CHECK_THROWS_WITH(
      lower(call_of(SyncAlgorithm::tree, 1.0_MB, iota(4), CollectiveOperation::all_to_all), topology, Calibration{}),
      Catch::Contains("naive, ring, hierarchical, pairwise"));
  CHECK_THROWS_WITH(lower(call_of(SyncAlgorithm::parameter_server, 1.0_MB, iota(4), CollectiveOperation::all_gather),
                          topology, Calibration{}),
                    Catch::Contains("halving_doubling"));
}

TEST_CASE("messages that do not divide, that are smaller than their chunks, or empty") {
  // Runs count every chunk as large as the largest: at most one byte per chunk and phase more than the schedule moves.
  const Topology topology(cluster_of(nvswitch_node(), 2));
  for (const AlgorithmRow& row : algorithm_table()) {
    if (row.algorithm == SyncAlgorithm::in_network) continue;  // needs other switches
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
  // Eight rings, one through each card: no less than what the cards must carry.
  CHECK(time(SyncAlgorithm::multi_ring, all_reduce) >= 1e3 * 2.0 * 2047 / 2048 / 8 / 25.0);
}

TEST_CASE("links that are nearly broken take no time to find rings over, and cost no more than having none") {
  // Rings go where the healthy lanes are, however thin the broken one is.
  double before = std::numeric_limits<double>::infinity();
  for (const BytesPerSecond left : {BytesPerSecond(1e3), BytesPerSecond(1e6), BytesPerSecond(1e9)}) {
    Cluster cluster = cluster_of(dgx1_node());
    cluster.faults = {{.node = 0, .link = "gpu0>gpu1", .bandwidth = left}};
    const Topology topology(cluster);
    const auto rings = multi_rings(iota(8), topology);
    CHECK(rings.size() <= 64);
    const double time = milliseconds(SyncAlgorithm::multi_ring, 160.0_MB, iota(8), topology);
    CHECK(time < 14 * (20.0 / 50.0 + 0.001));  // a third of the lanes would do
    CHECK(time <= before);
    before = time * 1.0001;
  }
}
