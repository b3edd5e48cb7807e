// `auto`: the traffic that NCCL's channels put on the links, worked out by hand, and the published sweeps.
#include "model/collectives/channels.hpp"
#include "model/collectives/contention.hpp"
#include "model/collectives/link_load.hpp"
#include "model/collectives/node_rings.hpp"
#include "model/collectives/traffic.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/library_of_today.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

/// Every link reaches its full bandwidth: traffic can be worked out from bytes alone.
CollectiveConstants lossless() {
  CollectiveConstants constants;
  constants.nvlink_efficiency = constants.pcie_efficiency = constants.network_efficiency = 1.0;
  constants.nvls_efficiency = constants.tree_efficiency = 1.0;
  return constants;
}

/// Of the busiest link, for one byte.
Seconds busiest(TrafficBuilder& builder, const Topology& topology) {
  return LinkLoad(topology).busiest(builder.flows());
}

/// All-reduce bus bandwidth of rings over the given ranks, in GB/s.
double ring_bandwidth(const Topology& topology, const std::vector<int>& ranks) {
  const CollectiveConstants constants = lossless();
  TrafficBuilder builder(topology, constants);
  builder.add(TrafficBuilder::Way::rings, lay_out(ranks, topology), CollectiveOperation::all_reduce);
  const int count = static_cast<int>(ranks.size());
  return 1e-9 * bus_bandwidth_factor(CollectiveOperation::all_reduce, count) / busiest(builder, topology).value();
}

const std::vector<CollectiveOperation> operations = {
    CollectiveOperation::all_reduce,  CollectiveOperation::all_gather, CollectiveOperation::reduce_scatter,
    CollectiveOperation::broadcast,   CollectiveOperation::reduce,     CollectiveOperation::all_to_all,
    CollectiveOperation::send_receive};

}  // namespace

TEST_CASE("rings use all NVLink lanes of a hybrid cube mesh in both directions") {
  const Topology topology(nccl_cluster(dgx1_node()));
  // Eight GPUs have six lanes of 25 GB/s each: one ring of double links and one of single links, each both ways.
  CHECK(ring_bandwidth(topology, iota(8)) == Approx(150.0));
  // In a quad every GPU has four lanes: two rings of single lanes, both ways.
  CHECK(ring_bandwidth(topology, iota(4)) == Approx(100.0));
  // GPUs 0, 1, 2 are joined by lanes 1, 2, 1: one ring of one lane, both ways.
  CHECK(ring_bandwidth(topology, iota(3)) == Approx(50.0));
  // A pair exchanges over its one (0-1) or two (0-3) lanes.
  CHECK(ring_bandwidth(topology, {0, 1}) == Approx(25.0));
  CHECK(ring_bandwidth(topology, {0, 3}) == Approx(50.0));
}

TEST_CASE("without peer access rings share host memory, and GPUs of two sockets what passes between these") {
  // Kernels that read from the host send a request of 24 bytes beside each write of 128 + 24.
  const double of_pcie = 152.0 / 176.0;
  // A socket's memory of 200 GB/s is written and read once for each GPU that receives: 2 · n · b <= 200. PCIe: 25 GB/s.
  Node one = staged_node(8, 1);
  one.cpu.memory_bandwidth = 200.0_GBps;
  const Topology one_socket(nccl_cluster(one));
  CHECK(ring_bandwidth(one_socket, iota(2)) == Approx(25.0 * of_pcie));
  CHECK(ring_bandwidth(one_socket, iota(4)) == Approx(25.0 * of_pcie));
  CHECK(ring_bandwidth(one_socket, iota(8)) == Approx(12.5 * of_pcie));
  // Two sockets with 200 GB/s each have four GPUs each; the ring passes from one to the other once in each direction.
  Node two = staged_node(8, 2);
  two.cpu.memory_bandwidth = 400.0_GBps;
  CHECK(ring_bandwidth(Topology(nccl_cluster(two)), iota(8)) == Approx(25.0 * of_pcie));
  two.link_types[1].gpu_bandwidth = 10.0_GBps;
  const Topology two_sockets(nccl_cluster(two));
  CHECK(ring_bandwidth(two_sockets, iota(4)) == Approx(25.0 * of_pcie));
  CHECK(ring_bandwidth(two_sockets, iota(8)) == Approx(10.0 * of_pcie));
  CHECK(ring_bandwidth(two_sockets, {0, 4}) == Approx(10.0 * of_pcie));
  // With access to each other's memory: PCIe alone, and the sockets' own limit.
  one.peer_to_peer = two.peer_to_peer = true;
  CHECK(ring_bandwidth(Topology(nccl_cluster(one)), iota(8)) == Approx(25.0));
  CHECK(ring_bandwidth(Topology(nccl_cluster(two)), iota(8)) == Approx(10.0));
}

TEST_CASE("rings go over the bridges of pairs, and between pairs through the host") {
  // Memory of 80 GB/s: four GPUs that receive from it take 2 · 4 · b, two of them 2 · 2 · b.
  Node node = staged_node(4, 1);
  node.cpu.memory_bandwidth = 80.0_GBps;
  const double of_pcie = 152.0 / 176.0;
  CHECK(ring_bandwidth(Topology(nccl_cluster(node)), iota(4)) == Approx(10.0 * of_pcie));
  node.link_types.push_back(link_type("bridge", LinkKind::nvlink, 12.5_GBps, 1.0_us));
  node.links.push_back({0, 2, 2, 4});
  node.links.push_back({1, 3, 2, 4});
  const Topology bridged(nccl_cluster(node));
  CHECK(node_rings(bridged, iota(4)).front().order == std::vector<int>{0, 2, 1, 3});
  CHECK(ring_bandwidth(bridged, iota(4)) == Approx(20.0 * of_pcie));
  CHECK(ring_bandwidth(bridged, {0, 2}) == Approx(50.0));
  CHECK(channel_share({0, 2}, bridged) == 1.0);
  CHECK(channel_share(iota(4), bridged) == 2.0 / 24);  // the rings of PCIe
}

TEST_CASE("GPUs that form no NVLink ring are joined by a path") {
  const Topology topology(nccl_cluster(dgx1_node()));
  // GPU 4 reaches the first four through GPU 0 only.
  const std::vector<NodeRing> rings = node_rings(topology, iota(5));
  REQUIRE(rings.size() == 1);
  CHECK(rings.front().chain);
  CHECK((rings.front().order.front() == 4 || rings.front().order.back() == 4));
  // The sum goes up the path of double lanes, 50 GB/s, and comes back, twice a byte a hop: so it does in a tree.
  CHECK(ring_bandwidth(topology, iota(5)) == Approx(bus_bandwidth_factor(CollectiveOperation::all_reduce, 5) * 25.0));
  const CollectiveConstants constants = lossless();
  TrafficBuilder ring(topology, constants), tree(topology, constants);
  ring.add(TrafficBuilder::Way::rings, lay_out(iota(5), topology), CollectiveOperation::all_reduce);
  tree.add(TrafficBuilder::Way::trees, lay_out(iota(5), topology), CollectiveOperation::all_reduce);
  const std::vector<Flow> of_ring = ring.flows(), of_tree = tree.flows();
  REQUIRE(of_ring.size() == 8);
  REQUIRE(of_tree.size() == 8);
  for (std::size_t i = 0; i < of_ring.size(); ++i) CHECK(of_tree[i].bytes.value() == Approx(of_ring[i].bytes.value()));
}

TEST_CASE("below switches of the network that reduce, a mesh's rings pass data between neighbours alone") {
  const Topology topology(nccl_cluster(dgx1_node(), 2));
  const CollectiveConstants constants = lossless();
  TrafficBuilder builder(topology, constants);
  builder.add(TrafficBuilder::Way::network_switches, lay_out(iota(16), topology), CollectiveOperation::all_reduce);
  std::map<int, double> sent;
  for (const Flow& flow : builder.flows()) {
    if (topology.node_of(flow.source) != topology.node_of(flow.destination)) continue;
    INFO(flow.source << " to " << flow.destination);
    const std::vector<LinkId> links = topology.route(flow.source, flow.destination).links;
    CHECK((links.size() == 1 && is_nvlink(topology.link_kind(links.front()))));
    sent[flow.source] += flow.bytes.value();
  }
  // Reduced to a share of each rank and gathered again: 2 · 7/8 of the message.
  REQUIRE(sent.size() == 16);
  for (const auto& [gpu, bytes] : sent) CHECK(bytes == Approx(2.0 * 7.0 / 8.0));
}

TEST_CASE("rings between nodes use every NIC") {
  // NVSwitch nodes with eight cards of 25 GB/s: 200 GB/s, less than the ports' 300 GB/s.
  CHECK(ring_bandwidth(Topology(nccl_cluster(nvswitch_node(), 4)), iota(32)) == Approx(200.0));
  // DGX-1 with four cards of 12.5 GB/s, two GPUs at each.
  CHECK(ring_bandwidth(Topology(nccl_cluster(dgx1_node(), 2)), iota(16)) == Approx(50.0));
  // One rank per node: its own card.
  CHECK(ring_bandwidth(Topology(nccl_cluster(nvswitch_node(), 4)), {3, 11, 19, 27}) == Approx(25.0));
}

TEST_CASE("a chunk crosses every hop of a ring but one, the short ones among them") {
  // Four nodes on two leaves, a millisecond a switch, 5 us beside them: hops of 1.005 and 3.005 ms in turn. An
  // all-gather's three steps cross one of the first and two of the others.
  Cluster cluster = nccl_cluster(nvswitch_node(), 4);
  cluster.network.fabric.shape = FatTree{2, 0, 1.0, 1.0, false};
  cluster.network.fabric.switch_latency = 1000.0_us;
  const Topology topology(cluster);
  const LoweredCollective lowered =
      by_nccl(automatic_call(CollectiveOperation::all_gather, 8.0_B, {{0, 8, 16, 24}}), topology);
  CHECK(uncontended_time(lowered, topology).value() * 1e3 == Approx(1.005 + 2 * 3.005).epsilon(0.01));
}

TEST_CASE("what a card takes for each message is lost, of small messages the most") {
  // Eight cards of 25 GB/s, of which endless messages get 0.8: 20 GB/s. A message of 1 MB takes 50 us and its own 5 us,
  // one of 125 kB 6.25 us and 5 us: 10/11 and 5/9 of the 160 GB/s of a node.
  Cluster cluster = nccl_cluster(nvswitch_node(), 4);
  cluster.network.messages = {.efficiency = 0.8, .message_time = 5.0_us, .step = 100.0_us};
  const Topology topology(cluster);
  const CollectiveConstants constants = lossless();
  for (const auto& [message, expected] : {std::pair(1000.0_KB, 160.0 * 10.0 / 11.0), {125.0_KB, 160.0 * 5.0 / 9.0}}) {
    TrafficBuilder builder(topology, constants, message);
    builder.add(TrafficBuilder::Way::rings, lay_out(iota(32), topology), CollectiveOperation::all_gather);
    const double factor = bus_bandwidth_factor(CollectiveOperation::all_gather, 32);
    CHECK(1e-9 * factor / busiest(builder, topology).value() == Approx(expected));
  }
  // A way up of a quarter of the cards' 200 GB/s carries all that endless messages would, 0.8 of it.
  cluster.network.oversubscription = 4.0;
  const Topology narrow(cluster);
  TrafficBuilder builder(narrow, constants, 1000.0_KB);
  builder.add(TrafficBuilder::Way::rings, lay_out(iota(32), narrow), CollectiveOperation::all_gather);
  const double factor = bus_bandwidth_factor(CollectiveOperation::all_gather, 32);
  CHECK(1e-9 * factor / busiest(builder, narrow).value() == Approx(40.0));
  // Nothing to send from one node to the next: the launch and one step of the card, not the shorter one of a protocol.
  const LoweredCollective empty = by_nccl(automatic_call(CollectiveOperation::all_gather, 0.0_B, {{0, 8}}), topology);
  CHECK(empty.phases.front().latency.value() == Approx(1e-6 * (published().collective.launch_us + 100.0)));
}

TEST_CASE("reductions in the switch pass every port once, and trees the network") {
  const CollectiveConstants constants = lossless();
  // A port carries the message and 1/8 of the result: 9/8 bytes at 300 GB/s.
  const Topology one(nccl_cluster(hopper_node()));
  TrafficBuilder inside(one, constants);
  inside.add(TrafficBuilder::Way::node_switches, lay_out(iota(8), one), CollectiveOperation::all_reduce);
  CHECK(busiest(inside, one).value() * 300e9 == Approx(9.0 / 8.0));
  // Trees: with more than two nodes the busiest one sends the message twice, at 8 · 25 GB/s. Two nodes exchange it
  // once, and the chains inside them are slower: a port carries 7/8 of it up and 7/8 down at 300 GB/s, 7/6 of 1/200.
  for (const auto& [nodes, messages] : {std::pair(2, 7.0 / 6.0), std::pair(5, 2.0)}) {
    const Topology topology(nccl_cluster(hopper_node(), nodes));
    TrafficBuilder between(topology, constants);
    between.add(TrafficBuilder::Way::trees, lay_out(iota(8 * nodes), topology), CollectiveOperation::all_reduce);
    CHECK(busiest(between, topology).value() * 200e9 == Approx(messages));
  }
}

TEST_CASE("small messages go by LL, large ones by Simple or through the switch") {
  const Topology hopper(nccl_cluster(hopper_node()));
  const Topology older(nccl_cluster(nvswitch_node()));
  const auto chosen = [](const Topology& topology, Bytes size) {
    return by_nccl(automatic_call(CollectiveOperation::all_reduce, size, {iota(topology.gpus())}), topology)
        .chosen_algorithm;
  };
  CHECK(chosen(older, 8.0_B) == "ring/LL");
  CHECK(chosen(older, 1.0_GB) == "ring/Simple");
  CHECK(chosen(hopper, 1.0_GB) == "nvls");
  CHECK(chosen(Topology(nccl_cluster(hopper_node(), 2)), 8.0_GB) == "nvls_tree");
  CHECK(chosen(Topology(nccl_cluster(pcie_switch_node(8))), 1.0_GB) == "ring/Simple");
}

TEST_CASE("switches reduce only where those of every group can") {
  Cluster cluster = nccl_cluster(hopper_node());
  cluster.groups = {{hopper_node(), 1, 8, cluster.network}, {nvswitch_node(), 1, 8, cluster.network}};
  cluster.nodes = 2;
  const Topology topology(cluster);
  const auto lowered = [&](std::vector<std::vector<int>> groups) {
    return by_nccl(automatic_call(CollectiveOperation::all_reduce, 1.0_GB, std::move(groups)), topology);
  };
  CHECK(lowered({iota(8)}).chosen_algorithm == "nvls");
  const LoweredCollective other = lowered({iota(8, 8)}), both = lowered({iota(8), iota(8, 8)});
  CHECK(other.chosen_algorithm == "ring/Simple");
  CHECK(both.chosen_algorithm == "ring/Simple");
  CHECK(uncontended_time(both, topology).value() == Approx(uncontended_time(other, topology).value()));
}

TEST_CASE("a tree over two nodes passes two bytes for each through the ring's channels") {
  // Sixteen GPUs, eight cards of 25 GB/s a node. A ring sends 2 · 15/16 of 8 GB over 200 GB/s, 75 ms; trees, which
  // would have to cross the network once, run at the ring's bandwidth and take 80 ms.
  const Topology topology(nccl_cluster(nvswitch_node(), 2));
  Calibration calibration = published();
  calibration.collective.network_efficiency = calibration.collective.nvlink_efficiency = 1.0;
  calibration.collective.tree_efficiency = 1.0;
  const LoweredCollective lowered =
      lower(automatic_call(CollectiveOperation::all_reduce, 8.0_GB, {iota(16)}), topology, calibration);
  CHECK(lowered.chosen_algorithm == "ring/Simple");
  CHECK(uncontended_time(lowered, topology).value() == Approx(0.075).epsilon(0.03));
}

TEST_CASE("automatic collectives: zero bytes cost latency only, and time never falls as bytes grow") {
  Cluster cluster = nccl_cluster(hopper_node(), 2);
  const bool messages = GENERATE(false, true);  // whether each takes the card some time
  if (messages) cluster.network.messages = {.efficiency = 0.8, .message_time = 5.0_us, .step = 50.0_us};
  const Topology topology(cluster);
  for (const CollectiveOperation operation : operations) {
    for (const std::vector<int>& ranks : {iota(2), iota(8), iota(16), std::vector<int>{0, 8}}) {
      INFO("operation " << static_cast<int>(operation) << ", " << ranks.size() << " ranks");
      const LoweredCollective empty = by_nccl(automatic_call(operation, 0.0_B, {ranks}), topology);
      REQUIRE(empty.phases.size() == 1);
      const Seconds least = uncontended_time(empty, topology);
      CHECK(least.value() == empty.phases.front().latency.value());
      CHECK(least.value() > 1e-6 * published().collective.launch_us * published().collective.hopper_share);
      Seconds previous = least;
      for (double bytes = 1.0; bytes < 2e10; bytes *= 1.9) {
        const Seconds time = nccl_time(automatic_call(operation, Bytes(bytes), {ranks}), topology);
        CHECK(time >= previous * (1.0 - 1e-12));
        previous = time;
      }
    }
  }
}

TEST_CASE("groups that run at once share the NICs") {
  // DGX-1: two GPUs at each card. One group of one rank per node has a card alone; eight groups share four cards.
  const Topology topology(nccl_cluster(dgx1_node(), 4));
  std::vector<std::vector<int>> groups;
  for (int local = 0; local < 8; ++local) groups.push_back({local, local + 8, local + 16, local + 24});
  const auto time = [&](const std::vector<std::vector<int>>& some) {
    const CollectiveCall call = automatic_call(CollectiveOperation::all_reduce, 1.0_GB, some);
    return nccl_time(call, topology).value();
  };
  CHECK(time(groups) == Approx(2.0 * time({groups.front()})).epsilon(0.01));
  // Groups over two nodes each, the second of which begins where the first one ends: GPUs 8 and 9 share a card.
  CHECK(time({{0, 9}, {8, 17}}) == Approx(2.0 * time({{0, 9}})).epsilon(0.01));
  CHECK(time({{0, 9}, {16, 25}}) == Approx(time({{0, 9}})).epsilon(0.01));
}

TEST_CASE("groups that repeat each other, and long rounds, give what looking at every node gives") {
  // A fault that takes nothing away makes its node one of another kind, so that nothing is taken over from others.
  Cluster cluster = nccl_cluster(nvswitch_node(), 12);
  const Topology alike(cluster);
  Fault harmless;
  harmless.node = 7;
  harmless.card = 0;
  cluster.faults = {harmless};
  const Topology unlike(cluster);
  REQUIRE(alike.nodes_are_alike());
  REQUIRE_FALSE(unlike.nodes_are_alike());

  const std::vector<int> all = iota(96);
  const std::vector<std::vector<int>> whole{all};
  std::vector<std::vector<int>> nodes, pairs, rails;  // a node each; two nodes each; one GPU of every node
  for (int node = 0; node < 12; ++node) nodes.emplace_back(all.begin() + 8 * node, all.begin() + 8 * node + 8);
  for (int pair = 0; pair < 6; ++pair) pairs.emplace_back(all.begin() + 16 * pair, all.begin() + 16 * pair + 16);
  for (int rail = 0; rail < 8; ++rail) {
    rails.emplace_back();
    for (int node = 0; node < 12; ++node) rails.back().push_back(8 * node + rail);
  }
  using enum CollectiveOperation;
  for (const std::vector<std::vector<int>>& groups : {nodes, pairs, rails, whole}) {
    for (const CollectiveOperation operation : {all_reduce, all_gather, reduce_scatter, broadcast, all_to_all}) {
      for (const Bytes size : {4.0_B, 1.0_MB, 1.0_GB}) {
        const CollectiveCall call = automatic_call(operation, size, groups);
        const LoweredCollective one = by_nccl(call, alike), other = by_nccl(call, unlike);
        INFO(name(operation) << " of " << size.value() << " B in " << groups.size() << " groups");
        CHECK(one.chosen_algorithm == other.chosen_algorithm);
        REQUIRE(one.phases.size() == other.phases.size());
        CHECK(uncontended_time(one, alike).value() == Approx(uncontended_time(other, unlike).value()).epsilon(1e-12));
        for (std::size_t k = 0; k < one.phases.size(); ++k) {
          const auto ends = [](const Flow& a, const Flow& b) {
            return a.source == b.source && a.destination == b.destination &&
                   a.bytes.value() == Approx(b.bytes.value()).epsilon(1e-12);
          };
          CHECK(std::ranges::equal(one.phases[k].flows, other.phases[k].flows, ends));
        }
      }
    }
  }
}
