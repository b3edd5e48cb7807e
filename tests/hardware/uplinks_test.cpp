// Which of a leaf's uplinks a connection takes, and by which group a dragonfly goes round.
#include "model/hardware/check.hpp"
#include "tests/catch.hpp"
#include "tests/hardware/fabrics.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

FatTree tree(int uplinks, std::optional<UplinkRouting> routing, int seed = 1) {
  FatTree tree{2, 0, 1.0, 1.0, false};
  tree.uplinks = uplinks;
  tree.routing = routing;
  tree.seed = seed;
  return tree;
}

/// The spine over which GPUs on the first two leaves meet: "leaf0>spine3", "spine3>leaf1".
std::string spine_of(const Topology& topology, int from, int to) {
  const std::vector<std::string> names = in_fabric(topology, from, to);
  REQUIRE(names.size() == 2);
  const std::string spine = names[0].substr(names[0].find('>') + 1);
  CHECK(names[0] == "leaf0>" + spine);
  CHECK(names[1] == spine + ">leaf1");
  return spine;
}

}  // namespace

TEST_CASE("A fault on a-b is on both directions between a and b, and on no other link") {
  const Fault between{.link = "gpu0-nvswitch"};
  for (const char* own : {"gpu0-nvswitch", "nvswitch-gpu0", "gpu0>nvswitch", "nvswitch>gpu0"}) {
    CHECK(between.concerns(own));
  }
  for (const char* other : {"gpu0-", "nvswitch-", "gpu0>", "gpu0>nvswitch1", "gpu00>nvswitch", "gpu1>nvswitch"}) {
    CHECK_FALSE(between.concerns(other));
  }
  CHECK(Fault{.link = "a>b"}.concerns("a>b"));
  CHECK_FALSE(Fault{.link = "a>b"}.concerns("b>a"));
}

TEST_CASE("Without a draw a leaf's uplinks are one link, for every router; with one each is a link of its own") {
  // Two nodes of eight cards of 25 GB/s: 400 GB/s in all, 25 on each of sixteen uplinks.
  for (const auto routing : {UplinkRouting::perfect, UplinkRouting::adaptive, UplinkRouting::hash}) {
    const Topology planned(behind(tree(16, routing), 4));
    CHECK(in_fabric(planned, 0, 16) == std::vector<std::string>{"leaf0>spine", "spine>leaf1"});
    CHECK(bandwidth_of(planned, "leaf0>spine").value() == Approx(400e9));
    CHECK(planned.draws_routes() == (routing == UplinkRouting::hash));
  }
  const Topology drawn(behind(tree(16, UplinkRouting::hash), 4), 0);
  CHECK_FALSE(drawn.draws_routes());
  for (int i = 0; i < 16; ++i) {
    CHECK(bandwidth_of(drawn, "leaf0>spine" + std::to_string(i)).value() == Approx(25e9));
    CHECK(bandwidth_of(drawn, "spine" + std::to_string(i) + ">leaf1").value() == Approx(25e9));
  }
  // The switches on the way are the same ones.
  CHECK(drawn.latency(0, 16) == Topology(behind(tree(16, std::nullopt), 4)).latency(0, 16));
  CHECK(in_fabric(drawn, 0, 8).empty());  // on one leaf
}

TEST_CASE(
    "As many uplinks as are as wide as a card, unless they are stated; nothing is drawn where there is no choice") {
  CHECK(tree(0, std::nullopt).uplinks_of(behind(tree(0, std::nullopt), 4)) == 16);
  FatTree thin = tree(0, UplinkRouting::hash);
  thin.oversubscription = 4.0;
  CHECK(thin.uplinks_of(behind(thin, 4)) == 4);
  thin.rails = true;  // a leaf has one card of each node
  CHECK(thin.uplinks_of(behind(thin, 4)) == 1);
  CHECK_FALSE(Topology(behind(thin, 4)).draws_routes());
  CHECK_FALSE(Topology(behind(tree(8, UplinkRouting::hash), 2)).draws_routes());  // all on one leaf
  CHECK(Topology(behind(tree(8, UplinkRouting::hash), 4)).draws_routes());
}

TEST_CASE("Two connections meet on one of eight uplinks in one of eight draws") {
  constexpr int seeds = 50;
  int met = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const Cluster cluster = behind(tree(8, UplinkRouting::hash, seed), 4);
    for (int draw = 0; draw < routes_drawn; ++draw) {
      const Topology drawn(cluster, draw);
      met += spine_of(drawn, 0, 16) == spine_of(drawn, 1, 17) ? 1 : 0;
    }
  }
  // 2,000 draws: 250 of them, with a standard deviation of √(2000 · 1/8 · 7/8) = 15.
  CHECK(std::abs(met - 250) < 60);
}

TEST_CASE("A draw is the same each time, another one and another seed are others") {
  const auto spines = [](int seed, int draw) {
    const Topology drawn(behind(tree(8, UplinkRouting::hash, seed), 4), draw);
    std::vector<std::string> all;
    for (int gpu = 0; gpu < 16; ++gpu) all.push_back(spine_of(drawn, gpu, 16 + gpu));
    return all;
  };
  CHECK(spines(1, 0) == spines(1, 0));
  CHECK(spines(1, 0) != spines(1, 1));
  CHECK(spines(1, 0) != spines(2, 0));
}

TEST_CASE("The core is a tier of its own: a second hash, on the cables of the spine that the first one named") {
  // Pods of two leaves of two nodes; four uplinks a leaf: four spines a pod, each with 2 leaves ÷ 1 = 2 cables into the
  // core. 4 nodes · 8 · 25 GB/s = 800 GB/s a pod, 100 on each of eight cables.
  FatTree pods = tree(4, UplinkRouting::hash);
  pods.nodes_per_pod = 4;
  const Cluster cluster = behind(pods, 8);
  CHECK(bandwidth_of(Topology(cluster), "pod0>core").value() == Approx(800e9));
  std::set<std::string> cores;
  for (int draw = 0; draw < routes_drawn; ++draw) {
    const Topology drawn(cluster, draw);
    const std::vector<std::string> names = in_fabric(drawn, 0, 32);
    REQUIRE(names.size() == 4);
    const int spine = std::stoi(names[0].substr(std::string("leaf0>spine").size()));
    const int core = std::stoi(names[1].substr(std::string("pod0>core").size()));
    CHECK(core / 2 == spine);
    CHECK(names[2] == "core" + std::to_string(core) + ">pod1");
    CHECK(names[3] == "spine" + std::to_string(spine) + ">leaf2");
    CHECK(bandwidth_of(drawn, names[1]).value() == Approx(100e9));
    cores.insert(names[1]);
  }
  CHECK(cores.size() == 8);
}

TEST_CASE("With adaptive routing a connection has one uplink at a time: it matters where a card is wider") {
  // 400 GB/s in 32 uplinks of 12.5; a card has 25.
  const Topology narrow(behind(tree(32, UplinkRouting::adaptive), 4));
  CHECK(narrow.limits_connections());
  CHECK(narrow.most_rate(0, 16).value() == Approx(12.5e9));
  CHECK_FALSE(is_finite(narrow.most_rate(0, 8)));
  CHECK(bandwidth_of(narrow, "leaf0>spine").value() == Approx(400e9));
  // Uplinks as wide as cards hold nobody back; neither does perfect routing.
  CHECK_FALSE(Topology(behind(tree(16, UplinkRouting::adaptive), 4)).limits_connections());
  CHECK_FALSE(Topology(behind(tree(32, UplinkRouting::perfect), 4)).limits_connections());
}

TEST_CASE("A cable of several may fail: an eighth of the way is gone, and no connection is hashed onto it") {
  const auto with_fault = [](UplinkRouting routing, const char* link) {
    Cluster cluster = behind(tree(8, routing), 4);
    cluster.faults = {Fault{.link = link, .failed = true}};
    return cluster;
  };
  const Cluster perfect = with_fault(UplinkRouting::perfect, "leaf0>spine3");
  REQUIRE_FALSE(check_network(perfect));
  CHECK(bandwidth_of(Topology(perfect), "leaf0>spine").value() == Approx(400e9 * 7 / 8));
  for (const char* way : {"leaf0>spine3", "spine3>leaf1"}) {
    const Cluster hashed = with_fault(UplinkRouting::hash, way);
    for (int draw = 0; draw < routes_drawn; ++draw) {
      const Topology drawn(hashed, draw);
      for (int gpu = 0; gpu < 16; ++gpu) REQUIRE(spine_of(drawn, gpu, 16 + gpu) != "spine3");
    }
  }
  // All of them together are the whole way, for hashes as well; there are no more than eight.
  CHECK(check_network(with_fault(UplinkRouting::hash, "leaf0>spine"))->text.find("no other path") != std::string::npos);
  CHECK(check_network(with_fault(UplinkRouting::hash, "leaf0>spine8")).has_value());
  // Half of all is half of each.
  Cluster half = behind(tree(8, UplinkRouting::hash), 4);
  half.faults = {Fault{.link = "leaf0>spine", .bandwidth = 200.0_GBps}};
  CHECK(bandwidth_of(Topology(half, 0), "leaf0>spine5").value() == Approx(25e9));
}

TEST_CASE("Valiant's routing goes by way of a third group, drawn for each connection") {
  constexpr int routers = 2, groups = 5, nodes = routers * groups;
  Dragonfly fly{1, routers, 2, groups, 25.0_GBps, 12.5_GBps};
  fly.routing = DragonflyRouting::valiant;
  const Cluster cluster = behind(fly, nodes);
  const Topology planned(cluster);
  CHECK(planned.draws_routes());
  std::map<std::string, int> middles;
  for (int draw = 0; draw < routes_drawn; ++draw) {
    const Topology drawn(cluster, draw);
    CHECK(in_fabric(drawn, 0, 8).size() == 1);  // routers of one group
    for (int from = 0; from < nodes; ++from) {
      for (int to = 0; to < nodes; ++to) {
        if (from / routers == to / routers) continue;
        std::vector<std::string> global = in_fabric(drawn, from * 8, to * 8);
        std::erase_if(global, [](const std::string& name) { return name.starts_with("router"); });
        REQUIRE(global.size() == 2);
        const std::string middle = global[0].substr(global[0].find('>') + 1, 6);
        REQUIRE(global[0].starts_with("group" + std::to_string(from / routers) + ">"));
        REQUIRE(global[1].starts_with(middle + ">group" + std::to_string(to / routers)));
        REQUIRE(middle != "group" + std::to_string(from / routers));
        REQUIRE(middle != "group" + std::to_string(to / routers));
        ++middles[middle];
      }
    }
  }
  // 40 draws of 80 connections, three fifths of which may go by each of five groups: 640 each, ± √(1920 · 1/3 · 2/3).
  REQUIRE(middles.size() == groups);
  for (const auto& [middle, count] : middles) CHECK(std::abs(count - 640) < 4 * 21);
  // Two routers more on the way than minimal routing has.
  fly.routing = DragonflyRouting::minimal;
  const Topology minimal(behind(fly, nodes));
  CHECK_FALSE(minimal.draws_routes());
  CHECK((planned.latency(0, 7 * 8) - minimal.latency(0, 7 * 8)).value() == Approx(1e-6));
}

TEST_CASE("Cables into the core are those of their spine, whether leaves are missing or cables have failed") {
  // Pods of two leaves of two nodes, the second of one leaf; four spines with two cables each. Of pod 0 cable 3 has
  // failed on its way up, cable 4 on the way down to pod 1: spines 1 and 2 have one way left.
  FatTree pods = tree(4, UplinkRouting::hash);
  pods.nodes_per_pod = 4;
  Cluster cluster = behind(pods, 6);
  for (const bool failed : {false, true}) {
    if (failed) cluster.faults = {{.link = "pod0>core3", .failed = true}, {.link = "core4>pod1", .failed = true}};
    std::set<int> cores;
    for (int draw = 0; draw < routes_drawn; ++draw) {
      const Topology drawn(cluster, draw);
      for (int gpu = 0; gpu < 16; ++gpu) {
        const std::vector<std::string> names = in_fabric(drawn, gpu, 32 + gpu);
        REQUIRE(names.size() == 4);
        const int core = std::stoi(names[1].substr(std::string("pod0>core").size()));
        REQUIRE(names[0] == "leaf0>spine" + std::to_string(core / 2));
        REQUIRE(names[2] == "core" + std::to_string(core) + ">pod1");
        cores.insert(core);
      }
    }
    CHECK(cores == (failed ? std::set<int>{0, 1, 2, 5, 6, 7} : std::set<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST_CASE(
    "Between leaves of different nodes a connection gets the narrower cable, and it is the widest card that asks") {
  // 32 uplinks a leaf: 2 · 8 cards of 25 GB/s make 12.5 GB/s each, of 50 GB/s 25.
  Cluster cluster = behind(tree(32, UplinkRouting::adaptive), 4);
  cluster.groups = {{cluster.node, 2, 8, cluster.network}, {cluster.node, 2, 8, cluster.network}};
  cluster.groups[1].network.nic_bandwidth = cluster.network.nic_bandwidth * 2.0;
  const Topology both(cluster);
  CHECK(both.most_rate(0, 16).value() == Approx(12.5e9));
  CHECK(both.most_rate(16, 0).value() == Approx(12.5e9));
  // One of each on a leaf, 16 uplinks: 8 · 75 / 16 = 37.5 GB/s, wide enough for the narrow cards alone.
  cluster.network.fabric.shape = tree(16, UplinkRouting::adaptive);
  cluster.groups = {cluster.groups[0], cluster.groups[1], cluster.groups[0], cluster.groups[1]};
  for (NodeGroup& group : cluster.groups) group.nodes = 1;
  CHECK(Topology(cluster).limits_connections());
  CHECK(Topology(cluster).most_rate(0, 16).value() == Approx(37.5e9));
}

TEST_CASE("Between pods a connection gets the narrowest cable on its way, of either pod") {
  // Pods of one leaf of two nodes; a leaf has 16 uplinks of 25 or of 50 GB/s, and a pod 16 cables.
  FatTree pods = tree(16, UplinkRouting::adaptive);
  pods.nodes_per_pod = 2;
  Cluster cluster = behind(pods, 4);
  cluster.groups = {{cluster.node, 2, 8, cluster.network}, {cluster.node, 2, 8, cluster.network}};
  cluster.groups[1].network.nic_bandwidth = cluster.network.nic_bandwidth * 2.0;
  const Topology all(cluster);
  CHECK(all.most_rate(0, 16).value() == Approx(25e9));
  CHECK(all.most_rate(16, 0).value() == Approx(25e9));
  // Half of the core's capacity is missing, but with one cable for each of a spine's leaves: half as wide.
  std::get<FatTree>(cluster.network.fabric.shape).pod_oversubscription = 2.0;
  CHECK(Topology(cluster).most_rate(0, 16).value() == Approx(12.5e9));
  std::swap(cluster.groups[0], cluster.groups[1]);  // the second pod's are the narrow ones
  CHECK(Topology(cluster).most_rate(0, 16).value() == Approx(12.5e9));
}
