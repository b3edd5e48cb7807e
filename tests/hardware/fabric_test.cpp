#include <cstdlib>

#include "model/base/error.hpp"
#include "model/hardware/check.hpp"
#include "tests/catch.hpp"
#include "tests/hardware/fabrics.hpp"
#include "tests/hardware/routes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

using Names = std::vector<std::string>;

double microseconds(const Topology& topology, int from, int to) {
  return topology.route(from, to).latency.value() * 1e6;
}

std::vector<decltype(Fabric::shape)> every_kind(int nodes) {
  FatTree plain{2, 0, 2.0, 1.0, false}, pods{2, 4, 2.0, 2.0, true};
  return {SingleSwitch{},
          plain,
          pods,
          Dragonfly{1, 2, 2, nodes / 2, 25.0_GBps, 12.5_GBps},
          Torus{{2, nodes / 2}, 12.5_GBps},
          Sites{3, 1e6, 10.0_GBps}};
}

std::string complaint(const Cluster& cluster) {
  const auto problem = check_network(cluster);
  return problem ? problem->key + ": " + problem->text : "";
}

}  // namespace

TEST_CASE("A fat tree's traffic climbs as far as it must") {
  const Topology tree(behind(FatTree{2, 0, 2.0, 1.0, false}, 4));
  CHECK(in_fabric(tree, 0, 8).empty());  // nodes 0 and 1 hang on one leaf
  CHECK(in_fabric(tree, 0, 16) == Names{"leaf0>spine", "spine>leaf1"});
  // One switch, or leaf, spine and leaf, after the 5 us of the hosts.
  CHECK(microseconds(tree, 0, 8) == Approx(5.5));
  CHECK(microseconds(tree, 0, 16) == Approx(6.5));
  // 2 nodes · 8 cards · 25 GB/s ÷ 2.
  CHECK(bandwidth_of(tree, "leaf0>spine").value() == Approx(200e9));
}

TEST_CASE("With pods a third level joins what two cannot") {
  const Topology tree(behind(FatTree{2, 4, 2.0, 4.0, false}, 8));
  CHECK(in_fabric(tree, 0, 16) == Names{"leaf0>spine", "spine>leaf1"});
  CHECK(in_fabric(tree, 0, 32) == Names{"leaf0>spine", "pod0>core", "core>pod1", "spine>leaf2"});
  CHECK(microseconds(tree, 0, 32) == Approx(5.0 + 5 * 0.5));
  // 4 nodes · 8 · 25 GB/s ÷ (2 · 4).
  CHECK(bandwidth_of(tree, "pod0>core").value() == Approx(100e9));
}

TEST_CASE("On rails equal cards of a group share a leaf; other cards are reached over the spine") {
  const Topology rails(behind(FatTree{4, 0, 2.0, 1.0, true}, 8));
  CHECK(in_fabric(rails, 3, 3 * 8 + 3).empty());
  CHECK(in_fabric(rails, 3, 3 * 8 + 5) == Names{"leaf0.3>spine", "spine>leaf0.5"});
  CHECK(in_fabric(rails, 3, 4 * 8 + 3) == Names{"leaf0.3>spine", "spine>leaf1.3"});
  CHECK(bandwidth_of(rails, "leaf1.7>spine").value() == Approx(4 * 25e9 / 2));
}

TEST_CASE("A dragonfly routes local, global, local, over the same cable both ways") {
  constexpr int routers = 3, groups = 4, nodes = 2 * routers * groups;
  const Topology fly(behind(Dragonfly{2, routers, 2, groups, 25.0_GBps, 12.5_GBps}, nodes));
  const auto router_name = [](int node) {
    return "router" + std::to_string(node / 2 / routers) + "." + std::to_string(node / 2 % routers);
  };
  for (int from = 0; from < nodes; ++from) {
    for (int to = 0; to < nodes; ++to) {
      if (from == to) continue;
      const Names names = in_fabric(fly, from * 8, to * 8);
      const int group = from / 2 / routers, other = to / 2 / routers;
      INFO(from << " to " << to);
      if (from / 2 == to / 2) {
        REQUIRE(names.empty());
        REQUIRE(microseconds(fly, from * 8, to * 8) == Approx(5.5));
        continue;
      }
      // As many routers as links, and one more.
      REQUIRE(microseconds(fly, from * 8, to * 8) == Approx(5.0 + 0.5 * static_cast<double>(names.size() + 1)));
      if (group == other) {
        REQUIRE(names == Names{router_name(from) + ">" + router_name(to)});
        continue;
      }
      const std::string between = "group" + std::to_string(group) + ">group" + std::to_string(other) + ".";
      const auto global =
          std::ranges::find_if(names, [&](const std::string& name) { return name.starts_with(between); });
      REQUIRE(global != names.end());
      REQUIRE(global - names.begin() <= 1);
      REQUIRE(names.end() - global <= 2);
      if (global != names.begin()) REQUIRE(names.front().starts_with(router_name(from) + ">"));
      if (global + 1 != names.end()) REQUIRE(names.back().ends_with(">" + router_name(to)));
      const Names back = in_fabric(fly, to * 8, from * 8);
      const std::string lane = global->substr(between.size());
      const std::string same_cable = "group" + std::to_string(other) + ">group" + std::to_string(group) + "." + lane;
      REQUIRE(std::ranges::find(back, same_cable) != back.end());
    }
  }
  // Six global ports of a group, two to each of three others: those to group 2, the second of group 0's peers, are the
  // third and fourth, on router 1. Group 2 counts 3, 0, 1: its links to group 0 are on its router 1 as well.
  CHECK(in_fabric(fly, 0, 12 * 8) == Names{"router0.0>router0.1", "group0>group2.0", "router2.1>router2.0"});
  // To group 3, the last of 0's peers, from router 2; group 3 counts group 0 first: router 0.
  CHECK(in_fabric(fly, 0, 18 * 8) == Names{"router0.0>router0.2", "group0>group3.0"});
}

TEST_CASE("A torus goes the shorter way round, dimension by dimension, from neighbour to neighbour") {
  const std::vector<int> sizes = {3, 4, 2};
  const Topology torus(behind(Torus{sizes, 12.5_GBps}, 24));
  const auto coordinate = [&](int node, std::size_t d) {
    const int below[] = {8, 2, 1};
    return node / below[d] % sizes[d];
  };
  for (int from = 0; from < 24; ++from) {
    for (int to = 0; to < 24; ++to) {
      if (from == to) continue;
      int distance = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        const int straight = std::abs(coordinate(from, d) - coordinate(to, d));
        distance += std::min(straight, sizes[d] - straight);
      }
      const Names names = in_fabric(torus, from * 8, to * 8);
      REQUIRE(static_cast<int>(names.size()) == distance);
      REQUIRE(microseconds(torus, from * 8, to * 8) == Approx(5.0 + 0.5 * distance));
      // Walk along the names: "node5>dimension1+" leads from node 5 to its next in dimension 1.
      int at = from;
      for (const std::string& name : names) {
        REQUIRE(name.starts_with("node" + std::to_string(at) + ">dimension"));
        const auto d = static_cast<std::size_t>(name[name.size() - 2] - '0');
        const int step = name.back() == '+' ? 1 : sizes[d] - 1, stride = d == 0 ? 8 : (d == 1 ? 2 : 1);
        at += ((coordinate(at, d) + step) % sizes[d] - coordinate(at, d)) * stride;
      }
      REQUIRE(at == to);
    }
  }
}

TEST_CASE("Sites are as far apart as light needs") {
  const Topology sites(behind(Sites{2, 1e7, 10.0_GBps}, 5));  // nodes 0 to 2, 3 and 4
  CHECK(in_fabric(sites, 0, 16).empty());
  CHECK(in_fabric(sites, 0, 24) == Names{"site0>line", "line>site1"});
  // 10,000 km ÷ (2/3 · 299,792.458 km/s) = 50.0346 ms; two switches and the hosts' 5 us.
  CHECK(microseconds(sites, 0, 24) == Approx(50034.6 + 6.0).epsilon(1e-6));
  CHECK(sites.route(0, 24).bandwidth.value() == Approx(10e9));
  // Of a line that reaches nine tenths of its rate.
  Cluster cluster = behind(Sites{2, 1e7, 10.0_GBps}, 5);
  cluster.network.efficiency = 0.9;
  CHECK(Topology(cluster).route(0, 24).bandwidth.value() == Approx(9e9));
}

TEST_CASE("Every fabric: what append_route appends, route states") {
  for (const auto& fabric : every_kind(6)) {
    const Topology topology(behind(fabric, 6));
    for (EndpointId from = 0; from < topology.gpus(); from += 3) {
      for (EndpointId to = 0; to < topology.endpoints(); to += 5) {
        std::vector<LinkId> links;
        topology.append_route(from, to, links);
        const Route route = topology.route(from, to);
        REQUIRE(topology.latency(from, to) == route.latency);
        test_routes::require_sound_route(topology, route, links);
      }
    }
  }
}

TEST_CASE("A slow card and a slow link slow down only what crosses them") {
  Cluster cluster = behind({}, 3);
  cluster.network.efficiency = 0.9;
  cluster.faults = {{.node = 1, .card = 2, .link = {}, .bandwidth = 10.0_Gbitps},
                    {.node = 1, .link = "gpu5-plx2", .share = 0.5}};
  const Topology topology(cluster);
  CHECK(topology.route(0, 8 + 2).bandwidth.value() == Approx(1.25e9 * 0.9));  // a card's rate is its line rate
  CHECK(topology.route(0, 8 + 3).bandwidth.value() == Approx(25e9 * 0.9));
  CHECK(topology.route(0, 16 + 2).bandwidth.value() == Approx(25e9 * 0.9));
  CHECK(topology.route(8 + 5, topology.host_of_gpu(8 + 5)).bandwidth.value() == Approx(12.5e9));
  CHECK(topology.route(5, topology.host_of_gpu(5)).bandwidth.value() == Approx(25e9));
  CHECK(topology.kind_of_node(0) == topology.kind_of_node(2));
  CHECK(topology.kind_of_node(0) != topology.kind_of_node(1));
}

TEST_CASE("GPUs whose card has failed use the nearest that is left") {
  Cluster cluster = behind({}, 2);
  cluster.faults = {{.node = 0, .card = 2, .link = {}, .failed = true}};
  const Topology one(cluster);
  CHECK(one.card_of_gpu(2) == 3);  // the other card of their switch
  CHECK(one.card_of_gpu(3) == 3);
  CHECK(one.card_of_gpu(8 + 2) == 2);
  cluster.faults.push_back({.node = 0, .card = 3, .link = {}, .failed = true});
  const Topology both(cluster);
  // None is left on switch 1: switch 0 hangs on the same socket. Four GPUs share its two cards.
  CHECK(both.card_of_gpu(2) < 2);
  CHECK(both.card_of_gpu(3) < 2);
  CHECK(both.links_per_node() == one.links_per_node());
}

TEST_CASE("When an NVLink has failed, GPUs talk over PCIe") {
  Cluster cluster = behind({}, 1);
  cluster.faults = {{.node = 0, .link = "gpu3-nvswitch", .failed = true}};
  const Topology topology(cluster);
  CHECK(topology.route(0, 1).links.size() == 2);
  CHECK(topology.link_kind(topology.route(0, 3).links.front()) == LinkKind::pcie);
}

TEST_CASE("A slow fabric link") {
  Cluster cluster = behind(FatTree{1, 0, 1.0, 1.0, false}, 3);
  cluster.faults = {{.link = "leaf1>spine", .share = 0.05}};
  const Topology topology(cluster);
  CHECK(topology.route(8, 0).bandwidth.value() == Approx(10e9));  // 8 · 25 GB/s · 5 %
  CHECK(topology.route(0, 8).bandwidth.value() == Approx(25e9));
  // Of cards that reach nine tenths of their rate; the leaf's cables carry as much of theirs.
  cluster.network.efficiency = 0.9;
  const Topology real(cluster);
  CHECK(real.route(8, 0).bandwidth.value() == Approx(9e9));
  CHECK(real.route(0, 8).bandwidth.value() == Approx(22.5e9));
}

TEST_CASE("A leaf's cables upward are those that the cards below it need") {
  // Two nodes of eight cards of 25 GB/s, then two whose cards have 50 GB/s. Two nodes a leaf, a quarter of their cards'
  // bandwidth upward: 2 · 8 · 25 / 4 = 100 GB/s and 200 GB/s. A pod of both leaves: 300 GB/s.
  Cluster cluster = behind(FatTree{2, 4, 4.0, 1.0, false}, 4);
  cluster.groups = {{cluster.node, 2, 8, cluster.network}, {cluster.node, 2, 8, cluster.network}};
  cluster.groups[1].network.nic_bandwidth = cluster.network.nic_bandwidth * 2.0;
  const Topology plain(cluster);
  CHECK(bandwidth_of(plain, "leaf0>spine").value() == Approx(100e9));
  CHECK(bandwidth_of(plain, "spine>leaf1").value() == Approx(200e9));
  CHECK(bandwidth_of(plain, "pod0>core").value() == Approx(300e9));
  // On rails a leaf has one card of each node; nodes with fewer cards leave the last rails to the others.
  cluster.network.fabric.shape = FatTree{4, 0, 4.0, 1.0, true};
  cluster.groups[1].network.nics_per_node = 4;
  const Topology rails(cluster);
  CHECK(bandwidth_of(rails, "leaf0.0>spine").value() == Approx((2 * 25e9 + 2 * 50e9) / 4));
  CHECK(bandwidth_of(rails, "leaf0.7>spine").value() == Approx(2 * 25e9 / 4));
}

TEST_CASE("Islands and other impossible networks are named") {
  Cluster cluster = behind({}, 2);
  for (int card = 0; card < 8; ++card) {
    cluster.faults.push_back({.node = 1, .card = card, .link = {}, .failed = true});
  }
  CHECK(complaint(cluster) == "faults[7]: node 1 has no working NIC");
  CHECK_THROWS_AS(Topology(cluster), ImpossiblePlan);

  cluster = behind(FatTree{1, 0, 1.0, 1.0, false}, 2);
  cluster.faults = {{.link = "leaf0-spine", .failed = true}};
  CHECK(complaint(cluster).find("no other path is left") != std::string::npos);

  cluster = behind({}, 2);
  cluster.faults = {{.node = 0, .link = "plx0>cpu0", .failed = true}};
  CHECK(complaint(cluster).find("no link leads from gpu0 to cpu0") != std::string::npos);
  cluster.faults[0].link = "cpu0>plx0";  // the way back alone
  CHECK(complaint(cluster).find("no link leads from cpu0 to gpu0") != std::string::npos);

  cluster.faults[0].link = "cpu1 memory";
  CHECK(complaint(cluster) == "faults[0].link: there is no way round cpu1 memory");

  // A torus of 2 x 2 has four nodes; dragonflies of 1 x 2 x 2 nodes too, and five do not fit.
  CHECK(complaint(behind(Torus{{2, 2}, 1.0_GBps}, 4)).empty());
  CHECK_FALSE(complaint(behind(Torus{{2, 2}, 1.0_GBps}, 5)).empty());
  CHECK(complaint(behind(Dragonfly{1, 2, 1, 2, 1.0_GBps, 1.0_GBps}, 4)).empty());
  CHECK_FALSE(complaint(behind(Dragonfly{1, 2, 1, 2, 1.0_GBps, 1.0_GBps}, 5)).empty());
  CHECK(complaint(behind(Sites{2, 1.0, 1.0_GBps}, 2)).empty());
  CHECK_FALSE(complaint(behind(Sites{3, 1.0, 1.0_GBps}, 2)).empty());
}

TEST_CASE("A transport limits connections and counts headers between nodes only") {
  Cluster cluster = behind(Sites{2, 1e7, 10.0_GBps}, 2);
  Transport tcp;
  tcp.window = Bytes(65536.0);
  cluster.network.transport = tcp;
  const Topology topology(cluster);
  CHECK(topology.limits_connections());
  const double round_trip = 2 * topology.latency(0, 8).value();
  CHECK(topology.most_rate(0, 8).value() == Approx(65536 / round_trip));
  CHECK(topology.route(0, 8).most_rate == topology.most_rate(0, 8));
  CHECK_FALSE(is_finite(topology.most_rate(0, 1)));
  // 64 B need 154 on the wire, of which links that carry payload at 1448/1538 of their rate feel 145.
  CHECK(topology.carried_bytes(0, 8, 64.0_B).value() == Approx(154 * 1448.0 / 1538));
  CHECK(topology.carried_bytes(0, 1, 64.0_B).value() == 64.0);
  CHECK(topology.carried_bytes(0, 8, 0.0_B).value() == 0.0);
}

TEST_CASE("Groups of a dragonfly that are joined by several cables use them by turns, router by router") {
  // Two groups of two routers with two global ports each: four cables, of which the last two hang on routers 1. The
  // routers' numbers add up to the cable.
  const Topology fly(behind(Dragonfly{1, 2, 2, 2, 25.0_GBps, 12.5_GBps}, 4));
  CHECK(in_fabric(fly, 0, 2 * 8) == Names{"group0>group1.0"});
  CHECK(in_fabric(fly, 0, 3 * 8) == Names{"group0>group1.1", "router1.0>router1.1"});
  CHECK(in_fabric(fly, 8, 2 * 8) == Names{"router0.1>router0.0", "group0>group1.1"});
  CHECK(in_fabric(fly, 8, 3 * 8) == Names{"group0>group1.2"});
  // Each way: a cable between the routers of each group, and four between the groups.
  CHECK(fly.links() - fly.first_fabric_link() == 2 * (2 + 4));
}

TEST_CASE("A dragonfly with too few global links, or too many, says so") {
  CHECK(complaint(behind(Dragonfly{1, 2, 1, 3, 1.0_GBps, 1.0_GBps}, 6)).empty());
  const auto problem = check_network(behind(Dragonfly{1, 2, 1, 4, 1.0_GBps, 1.0_GBps}, 8));
  REQUIRE(problem);
  CHECK(problem->text == "a group's 2 global links do not reach 3 other groups");
  CHECK(problem->expected == "at most 3 groups, or more global links");
  CHECK(complaint(behind(Dragonfly{1, 1, 200'000'000, 2, 1.0_GBps, 1.0_GBps}, 2)).find("more links than") !=
        std::string::npos);
}

TEST_CASE("A tree has as many leaves and pods as its nodes need, of which the last may be half empty") {
  const auto cables = [](const FatTree& tree, int nodes) {
    const Topology topology(behind(tree, nodes));
    return topology.links() - topology.first_fabric_link();
  };
  // One link up and one down for each leaf, and for each pod.
  const FatTree plain{2, 0, 2.0, 1.0, false}, pods{2, 4, 2.0, 1.0, false};
  CHECK(cables(plain, 4) == 2 * 2);
  CHECK(cables(plain, 5) == 2 * 3);
  CHECK(cables(plain, 6) == 2 * 3);
  CHECK(cables(pods, 8) == 2 * (4 + 2));
  CHECK(cables(pods, 9) == 2 * (5 + 3));
}

TEST_CASE("Places that no node has taken are for such as the last one") {
  // Two nodes of eight cards of 25 GB/s, then one of 50 alone on the second leaf, which has room for another one.
  Cluster cluster = behind(FatTree{2, 0, 1.0, 1.0, false}, 3);
  cluster.groups = {{cluster.node, 2, 8, cluster.network}, {cluster.node, 1, 8, cluster.network}};
  cluster.groups[1].network.nic_bandwidth = cluster.network.nic_bandwidth * 2.0;
  CHECK(bandwidth_of(Topology(cluster), "leaf1>spine").value() == Approx(2 * 8 * 50e9));
}
