// Routes on nodes built in code, where every expected link can be named by hand.
#include "model/hardware/topology.hpp"

#include "model/base/error.hpp"
#include "model/hardware/wiring_graph.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"
#include "tests/hardware/nodes.hpp"
#include "tests/hardware/routes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

std::vector<std::string> names(const Topology& topology, const Route& route) {
  std::vector<std::string> result;
  for (const LinkId link : route.links) result.push_back(topology.link(link).name);
  return result;
}

std::vector<std::string> names(const Topology& topology, EndpointId from, EndpointId to) {
  return names(topology, topology.route(from, to));
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("GPUs behind one PCIe switch meet in the switch; host traffic shares the switch's link to the CPU") {
  const Topology topology(cluster_of(pcie_switch_node()));
  CHECK(names(topology, 0, 3) == Names{"gpu0>plx0", "plx0>gpu3"});
  CHECK(names(topology, 0, topology.host(0, 0)) == Names{"gpu0>plx0", "plx0>cpu0", "cpu0 memory"});
  CHECK(names(topology, topology.host(0, 0), 2) == Names{"cpu0 memory", "cpu0>plx0", "plx0>gpu2"});
  const Route route = topology.route(0, 3);
  CHECK(route.bandwidth.value() == Approx(16e9));
  CHECK(route.latency.value() == Approx(2e-6));  // two links of 1 µs
}

TEST_CASE("A route from an endpoint to itself is empty and endless in width") {
  const Topology topology(cluster_of(dgx1_node(), 2));
  for (const EndpointId endpoint : {0, 9, topology.host(1, 1)}) {
    const Route route = topology.route(endpoint, endpoint);
    CHECK(route.links.empty());
    CHECK(route.latency.value() == 0.0);
    CHECK_FALSE(is_finite(route.bandwidth));
  }
}

TEST_CASE("DGX-1: neighbours talk over NVLink, others over PCIe and the sockets") {
  const Topology topology(cluster_of(dgx1_node()));
  const Route doubled = topology.route(0, 3);
  CHECK(names(topology, doubled) == Names{"gpu0>gpu3"});
  CHECK(doubled.bandwidth.value() == Approx(50e9));  // two links of 25 GB/s
  CHECK(topology.route(0, 1).bandwidth.value() == Approx(25e9));
  CHECK(topology.link_kind(doubled.links[0]) == LinkKind::nvlink);
  // No NVLink joins 0 and 5, and GPUs carry nothing for others: up to socket 0, across, through its memory, down to
  // switch 2.
  const Route far = topology.route(0, 5);
  CHECK(names(topology, far) ==
        Names{"gpu0>plx0", "plx0>cpu0", "cpu0>cpu1", "cpu1 memory", "cpu1 memory", "cpu1>plx2", "plx2>gpu5"});
  CHECK(far.bandwidth.value() == Approx(16e9));
  CHECK(far.latency.value() == Approx(4.5e-6));  // four PCIe links of 1 µs, one QPI of 0.5 µs
  CHECK(topology.host_of_gpu(3) == topology.host(0, 0));
  CHECK(topology.host_of_gpu(4) == topology.host(0, 1));
}

TEST_CASE("NVSwitch: all pairs are equal and take two links of the GPUs' whole NVLink width") {
  const Topology topology(cluster_of(nvswitch_node()));
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) {
      if (from == to) continue;
      const Route route = topology.route(from, to);
      REQUIRE(route.links.size() == 2);
      CHECK(route.bandwidth.value() == Approx(300e9));
      CHECK(topology.link(route.links[0]).name == "gpu" + std::to_string(from) + ">nvswitch");
      CHECK(topology.link(route.links[1]).name == "nvswitch>gpu" + std::to_string(to));
    }
  }
}

TEST_CASE("Between nodes a route crosses both nearest cards, and takes the network's latency") {
  const Topology topology(cluster_of(nvswitch_node(), 4));
  // GPU 3 shares switch 1 with card 3 (cards 2 and 3 hang there, GPU 2 takes card 2).
  const Route route = topology.route(3, 8 + 6);
  CHECK(names(topology, route) == Names{"node0/gpu3>plx1", "node0/plx1>nic3", "node0/nic3>fabric", "node1/fabric>nic6",
                                        "node1/nic6>plx3", "node1/plx3>gpu6"});
  CHECK(route.latency.value() == Approx(5e-6));
  CHECK(route.bandwidth.value() == Approx(25e9));  // 200 Gbit/s
  CHECK(topology.card_of_gpu(3) == 3);
  CHECK(topology.card_of_gpu(8 + 6) == 6);
}

TEST_CASE("Two GPUs share the one card of their switch; a lone card serves the whole node") {
  const Topology topology(cluster_of(dgx1_node(), 2));
  for (int gpu = 0; gpu < 8; ++gpu) CHECK(topology.card_of_gpu(gpu) == gpu / 2);
  Cluster one_card = cluster_of(dgx1_node(), 2);
  one_card.network.nics_per_node = 1;
  const Topology lone(one_card);
  for (int gpu = 0; gpu < 8; ++gpu) CHECK(lone.card_of_gpu(gpu) == 0);
  // GPU 7 reaches the card on switch 0 through both sockets.
  CHECK(lone.route(7, 8).links.size() == 5 + 2 + 2);
}

TEST_CASE("Cards on the sockets are spread evenly over the GPUs by index") {
  Node node = staged_node();
  node.network = {2, 100.0_Gbitps, 1.0, 5.0_us, 1.0, true};  // nothing stated about where they hang: one per socket
  const Topology per_socket(cluster_of(node, 2));
  CHECK(per_socket.card_of_gpu(1) == 0);
  CHECK(per_socket.card_of_gpu(2) == 1);
  node.nic_attachment = {4};  // both on socket 0: GPUs 0, 1 → card 0 and GPUs 2, 3 → card 1
  const Topology one_socket(cluster_of(node, 2));
  CHECK(one_socket.card_of_gpu(1) == 0);
  CHECK(one_socket.card_of_gpu(2) == 1);
}

TEST_CASE("Without peer-to-peer a copy between GPUs is staged through the memory near its destination") {
  const Topology topology(cluster_of(staged_node()));
  const Route near = topology.route(0, 1);
  CHECK(names(topology, near) == Names{"gpu0>cpu0", "cpu0 memory", "cpu0 memory", "cpu0>gpu1"});
  CHECK(near.bandwidth.value() == Approx(25e9));
  CHECK(near.latency.value() == Approx(2e-6));  // over PCIe there and back
  const Route far = topology.route(0, 3);
  CHECK(names(topology, far) == Names{"gpu0>cpu0", "cpu0>cpu1", "cpu1 memory", "cpu1 memory", "cpu1>gpu3"});
}

TEST_CASE("By default GPUs copy to each other below PCIe switches alone, and not at all without peer access") {
  Node below = pcie_switch_node(), above = staged_node();
  above.peer_to_peer = std::nullopt;
  const Names straight = {"gpu0>plx0", "plx0>gpu1"};
  const Names staged = {"gpu0>plx0", "plx0>cpu0", "cpu0 memory", "cpu0 memory", "cpu0>plx0", "plx0>gpu1"};
  const Names past_processor = {"gpu0>cpu0", "cpu0 memory", "cpu0 memory", "cpu0>gpu1"};
  CHECK(names(Topology(cluster_of(below)), 0, 1) == straight);
  CHECK(names(Topology(cluster_of(above)), 0, 1) == past_processor);
  below.gpu.peer_access = false;
  CHECK(names(Topology(cluster_of(below)), 0, 1) == staged);
  below.peer_to_peer = above.peer_to_peer = true;  // a patched driver, NCCL_P2P_LEVEL=SYS
  CHECK(names(Topology(cluster_of(below)), 0, 1) == straight);
  CHECK(names(Topology(cluster_of(above)), 0, 1) == Names{"gpu0>cpu0", "cpu0>gpu1"});
}

TEST_CASE("What GPUs send each other between sockets has a limit of its own, that of hosts has not") {
  Node node = staged_node();
  node.link_types[1].gpu_bandwidth = 10.0_GBps;
  const Topology topology(cluster_of(node));
  const Route far = topology.route(0, 3);
  CHECK(names(topology, far).back() == "cpu0>cpu1 for GPUs");
  CHECK(far.bandwidth.value() == Approx(10e9));
  CHECK(topology.route(0, topology.host(0, 1)).bandwidth.value() == Approx(25e9));
}

TEST_CASE("A link that stands twice in a route gives half its bandwidth") {
  Node node = staged_node();
  node.cpu.memory_bandwidth = 60.0_GBps;  // 30 GB/s a socket, written and read: 15 GB/s, less than PCIe's 25
  const Topology topology(cluster_of(node));
  CHECK(topology.route(0, 1).bandwidth.value() == Approx(15e9));
}

TEST_CASE("Without GPUDirect, data for the network passes through host memory on both sides") {
  Cluster cluster = cluster_of(dgx1_node(), 2);
  cluster.network.gpu_direct = false;
  const Topology topology(cluster);
  CHECK(names(topology, 0, 8) == Names{"node0/gpu0>plx0", "node0/plx0>cpu0", "node0/cpu0 memory", "node0/cpu0 memory",
                                       "node0/cpu0>plx0", "node0/plx0>nic0", "node0/nic0>fabric", "node1/fabric>nic0",
                                       "node1/nic0>plx0", "node1/plx0>cpu0", "node1/cpu0 memory", "node1/cpu0 memory",
                                       "node1/cpu0>plx0", "node1/plx0>gpu0"});
}

TEST_CASE("Host memory near several cards uses them by turns, one for each peer") {
  const Topology topology(cluster_of(dgx1_node(), 3));
  std::set<std::string> cards;
  for (int gpu = 8; gpu < 16; ++gpu) cards.insert(names(topology, topology.host(0, 0), gpu)[3]);
  CHECK(cards == std::set<std::string>{"node0/nic0>fabric", "node0/nic1>fabric"});
}

TEST_CASE("A half-duplex link is one link for both directions, and is counted once") {
  Node duplex = pcie_switch_node();
  const Topology full(cluster_of(duplex));
  duplex.link_types[0].full_duplex = false;
  const Topology half(cluster_of(duplex));
  // Four GPUs and the CPU, both ways; one memory, and adding up, for which the 16 cores are narrower.
  CHECK(full.links() == 5 * 2 + 2);
  CHECK(half.links() == 5 + 2);
  CHECK(half.route(0, 1).links[0] == half.route(1, 0).links[1]);
  CHECK(half.route(0, 1).links[1] == half.route(1, 0).links[0]);
}

TEST_CASE("Oversubscription adds one narrower link out of the node and one into it") {
  Cluster cluster = cluster_of(nvswitch_node(), 2);
  const Topology plain(cluster);
  cluster.network.oversubscription = 16.0;
  cluster.network.efficiency = 0.9;
  const Topology narrow(cluster);
  CHECK(narrow.links_per_node() == plain.links_per_node() + 2);
  const Route route = narrow.route(0, 8);
  CHECK(route.links.size() == plain.route(0, 8).links.size() + 2);
  // 8 cards × 25 GB/s × 0.9 ÷ 16 = 11.25 GB/s, less than one card's 22.5 GB/s.
  CHECK(route.bandwidth.value() == Approx(11.25e9));
  CHECK(plain.route(0, 8).bandwidth.value() == Approx(25e9));
}

TEST_CASE("Only the first GPUs of each node are ranks when fewer are asked for") {
  Cluster cluster = cluster_of(dgx1_node(), 2);
  cluster.gpus_per_node = 4;
  const Topology topology(cluster);
  CHECK(topology.gpus() == 8);
  CHECK(topology.node_of(4) == 1);
  CHECK(topology.endpoint_name(4) == "node1/gpu0");
  CHECK(topology.endpoints() == 8 + 2 * 2);
  CHECK(topology.host(1, 0) == 8 + 2);
  CHECK(topology.endpoint_name(topology.host(1, 1)) == "node1/cpu1");
  CHECK(topology.node_of(topology.host(1, 1)) == 1);
  CHECK(topology.is_gpu(7));
  CHECK_FALSE(topology.is_gpu(8));
}

TEST_CASE("16,384 GPUs: links grow with the nodes, not with pairs of them") {
  const Topology topology(cluster_of(nvswitch_node(), 2048));
  CHECK(topology.gpus() == 16384);
  // Per node: 8 NVLink bundles + 12 PCIe + 1 xGMI + 8 card slots, both ways; 2 memories and what the cores add up into
  // them; 8 cards out and in.
  CHECK(topology.links() == 2048 * (2 * (8 + 12 + 1 + 8) + 2 + 2 + 16));
}

TEST_CASE("Impossible clusters are named") {
  const auto complaint = [](const Cluster& cluster) -> std::string {
    return test::complaint_of<ImpossiblePlan>([&] { const Topology topology(cluster); });
  };
  Node without_link = pcie_switch_node();
  without_link.links.erase(without_link.links.begin() + 2);
  CHECK(complaint(cluster_of(without_link)) == "pcie-switch: no link leads from gpu0 to gpu2");
  CHECK(complaint(cluster_of(pcie_switch_node(), 2)) == "pcie-switch: 2 nodes need NICs");
  Cluster too_many = cluster_of(pcie_switch_node());
  too_many.gpus_per_node = 5;
  CHECK(complaint(too_many) == "pcie-switch: 5 GPUs per node asked for, but the node has 4");
  CHECK(complaint(cluster_of(pcie_switch_node())) == "accepted");
}

TEST_CASE("nodes of several kinds: everything is numbered node by node") {
  // Two nodes of eight GPUs, three of four: GPUs 0–15 and 16–27, hosts behind them, links node by node.
  Cluster cluster = test_nodes::cluster_of(test_nodes::nvswitch_node(), 2);
  const Cluster other = test_nodes::cluster_of(test_nodes::dgx1_node(), 3);
  cluster.groups = {{cluster.node, 2, cluster.gpus_per_node, cluster.network}, {other.node, 3, 4, other.network}};
  cluster.groups[1].network.latency = cluster.network.latency * 3.0;
  cluster.nodes = 5;
  const Topology topology(cluster);
  const Topology first(test_nodes::cluster_of(test_nodes::nvswitch_node(), 2));
  const Topology second(test_nodes::cluster_of(test_nodes::dgx1_node(), 2));
  const int of_first = cluster.gpus_per_node;
  CHECK(topology.gpus() == 2 * of_first + 12);
  CHECK(topology.gpus() == cluster.gpus());
  CHECK(topology.first_gpu(3) == 2 * of_first + 4);
  CHECK(cluster.first_gpu(1) == of_first);
  CHECK(cluster.first_gpu(4) == 2 * of_first + 8);
  CHECK(topology.node_of(2 * of_first + 5) == 3);
  CHECK(topology.group_of_node(1) == 0);
  CHECK(topology.group_of_node(2) == 1);
  CHECK(topology.kind_of_node(1) != topology.kind_of_node(2));
  CHECK(topology.endpoint_name(2 * of_first + 5) == "node3/gpu1");
  for (int node = 0; node < 5; ++node) CHECK(topology.node_of(topology.host(node, 0)) == node);
  CHECK(topology.host(4, 1) == topology.endpoints() - 1);
  CHECK(topology.host_of_server(topology.server_on(topology.host(4, 1))) == topology.host(4, 1));

  // Inside a node, the routes of its kind; between nodes of two kinds the narrower card and the longer way.
  CHECK(topology.route(0, 1).bandwidth == first.route(0, 1).bandwidth);
  const Route across = topology.route(0, 2 * of_first);
  CHECK(across.bandwidth == std::min(first.route(0, of_first).bandwidth, second.route(0, 8).bandwidth));
  CHECK(across.latency == first.route(0, of_first).latency * 3.0);
  for (const LinkId link : across.links) {
    CHECK(topology.link(link).name.starts_with(link < 2 * topology.links_per_node() ? "node0/" : "node2/"));
  }
}

TEST_CASE("GPUs, hosts, servers and what is outside are endpoints of their own") {
  const Topology topology(cluster_of(dgx1_node(), 3));
  std::vector<EndpointId> all;
  for (int gpu = 0; gpu < topology.gpus(); ++gpu) all.push_back(topology.gpu(gpu));
  for (int node = 0; node < 3; ++node) {
    for (int socket = 0; socket < 2; ++socket) {
      all.push_back(topology.host(node, socket));
      all.push_back(topology.server_on(topology.host(node, socket)));
    }
  }
  for (int number = 0; number < 3; ++number) all.push_back(topology.outside(number));
  std::ranges::sort(all);
  CHECK(std::ranges::adjacent_find(all) == all.end());
  CHECK(all.size() == 24 + 2 * 6 + 3);
}

TEST_CASE("Of paths with as few hops the one whose narrowest wire is widest is taken") {
  // 0 to 3 by way of 1, over wires of 10 and 1, or of 2, over two of 3; by way of 4 and 5 it is farther.
  Node node;
  node.vertices.assign(6, {"", VertexKind::pcie_switch});
  WiringGraph graph(node);
  const auto wire = [&](int from, int to, double bandwidth) {
    graph.add_wire(from, to, {from * 10 + to, BytesPerSecond(bandwidth), Seconds(0.0)});
  };
  wire(0, 1, 10.0);
  wire(1, 3, 1.0);
  wire(0, 2, 3.0);
  wire(2, 3, 3.0);
  wire(0, 4, 100.0);
  wire(4, 5, 100.0);
  wire(5, 3, 100.0);
  const auto paths = graph.paths_from(0, WiringGraph::Through::anything);
  REQUIRE(paths[3]);
  CHECK(paths[3]->vertices == std::vector<int>{0, 2, 3});
  CHECK(paths[3]->cost.narrowest == BytesPerSecond(3.0));
  CHECK_FALSE(graph.paths_from(0, WiringGraph::Through::nvlink_only)[3]);
}
