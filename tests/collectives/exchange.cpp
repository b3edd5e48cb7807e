// All-to-alls of tokens: what travels where, by hand.
#include "model/collectives/exchange.hpp"

#include "tests/catch.hpp"
#include "tests/collectives/calls.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

/// Each rank has 1 MB of tokens, `copies` of each for as many experts.
CollectiveCall tokens(ExpertDispatch dispatch, int copies, int ranks, double imbalance = 1.0) {
  CollectiveCall call;
  call.operation = CollectiveOperation::all_to_all;
  call.size = 1.0_MB * static_cast<double>(copies);
  call.groups = {iota(ranks)};
  call.tokens = {dispatch, copies, imbalance};
  return call;
}

ExchangeParts parts(ExpertDispatch dispatch, int copies, int nodes) {
  const Topology topology(cluster_of(nvswitch_node(), nodes));
  return {tokens(dispatch, copies, 8 * nodes), iota(8 * nodes), topology};
}

double seconds(const CollectiveCall& call, const Topology& topology) {
  return uncontended_time(lower(call, topology, Calibration{}), topology).value();
}

constexpr auto plain = ExpertDispatch::all_to_all, once = ExpertDispatch::deduplicated,
               own_rail = ExpertDispatch::forwarded;

void check_equal_loads(const LoweredCollective::Phase& found, const LoweredCollective::Phase& expected,
                       const Topology& topology) {
  const auto a = loads(found, topology), b = loads(expected, topology);
  REQUIRE(a.size() == b.size());
  for (const auto& [link, bytes] : b) {
    INFO(topology.link(link).name);
    CHECK(a.at(link) == Approx(bytes));
  }
  CHECK(found.latency.value() == expected.latency.value());
}

}  // namespace

TEST_CASE("tokens travel as often as the dispatch says") {
  // Two nodes of eight, 8 copies. Plainly 8 MB / 16 ranks = 0.5 MB to each. A node holds one of a token's experts with
  // probability 1 − (1/2)^8 = 0.99609, a rank with 1 − (15/16)^8 = 0.40325.
  CHECK(parts(plain, 8, 2).far.value() == Approx(0.5e6));
  CHECK(parts(plain, 8, 2).near.value() == Approx(0.5e6));
  // Once to each node, evenly over its eight ranks: 0.1245 MB to each. 8 · 0.40325 = 3.226 ranks of it want the token,
  // of which one has it: (3.226 − 0.996) / 7 = 0.3186 MB to each other rank, beside the own node's 0.40325 MB.
  CHECK_FALSE(parts(once, 8, 2).rails);
  CHECK(parts(once, 8, 2).far.value() == Approx(0.12451e6).epsilon(1e-4));
  CHECK(parts(once, 8, 2).near.value() == Approx((0.40325 + 0.31857) * 1e6).epsilon(1e-4));
  // On its own rail: all of it to one rank, which hands it on to each other rank that wants it.
  CHECK(parts(own_rail, 8, 2).rails);
  CHECK(parts(own_rail, 8, 2).far.value() == Approx(0.99609e6).epsilon(1e-4));
  CHECK(parts(own_rail, 8, 2).near.value() == Approx(2 * 0.40325e6).epsilon(1e-4));
  // On one node: 1 − (7/8)^8 = 0.6564 MB to each rank, instead of 8/8.
  CHECK(parts(once, 8, 1).near.value() == Approx(0.6564e6).epsilon(1e-4));
  CHECK(parts(own_rail, 8, 1).near.value() == Approx(0.6564e6).epsilon(1e-4));
  CHECK(parts(plain, 8, 1).near.value() == Approx(1e6));
  // One copy goes to one place: nothing to save.
  CHECK(parts(once, 1, 2).far == parts(plain, 1, 2).far);
  CHECK(parts(own_rail, 1, 2).far.value() == Approx(8 * parts(plain, 1, 2).far.value()));
}

TEST_CASE("a forwarded token crosses the network on its own rail, and goes on over NVLink") {
  for (const int nodes : {2, 9}) {  // pair by pair, and in sums
    const Topology topology(cluster_of(nvswitch_node(), nodes));
    const std::vector<int> ranks = iota(8 * nodes);
    const ExchangeParts forwarded(tokens(own_rail, 8, 8 * nodes), ranks, topology);
    std::map<int, double> sent, received, inside;
    for (const Flow& flow : exchange_flows(ranks, forwarded, topology)) {
      if (topology.node_of(flow.source) == topology.node_of(flow.destination)) {
        inside[flow.source] += flow.bytes.value();
        continue;
      }
      CHECK(flow.source % 8 == flow.destination % 8);
      sent[flow.source] += flow.bytes.value();
      received[flow.destination] += flow.bytes.value();
    }
    for (const int rank : ranks) {
      CHECK(sent[rank] == Approx(forwarded.far.value() * (nodes - 1)));
      CHECK(received[rank] == Approx(forwarded.far.value() * (nodes - 1)));
      CHECK(inside[rank] == Approx(forwarded.near.value() * 7));
    }
  }
}

TEST_CASE("weights are the messages that flows stand for, on both sides") {
  // 9 nodes: 64 messages leave and reach every rank, whichever flows carry them.
  const Topology topology(cluster_of(nvswitch_node(), 9));
  std::map<int, double> sent, received;
  for (const Flow& flow : exchange_flows(iota(72), ExchangeParts(1.0_MB), topology)) {
    if (topology.node_of(flow.source) == topology.node_of(flow.destination)) {
      CHECK(flow.weight == 1.0);
      continue;
    }
    CHECK(flow.bytes.value() == Approx(1e6 * flow.weight));
    sent[flow.source] += flow.weight;
    received[flow.destination] += flow.weight;
  }
  for (int rank = 0; rank < 72; ++rank) {
    CHECK(sent[rank] == 64.0);
    CHECK(received[rank] == 64.0);
  }
}

TEST_CASE("messages between the same two ends use one connection, messages to different ends one each") {
  // The first two are joined: 3 MB over the two connections of the heavier one.
  const std::vector<Flow> merged =
      merge_by_ends({{0, 1, 1.0_MB, 2.0}, {0, 2, 5.0_MB, 4.0}, {0, 1, 2.0_MB}, {1, 0, 1.0_MB}});
  REQUIRE(merged.size() == 3);
  CHECK(merged[0].bytes.value() == 3e6);
  CHECK(merged[0].weight == 2.0);
  CHECK(merged[1].weight == 4.0);
  CHECK(merged[2].weight == 1.0);
}

TEST_CASE("the hottest rank's way in is busier by the imbalance, a hot node's by less") {
  // Every card carries as much in as out; that of the hottest of 64 ranks carries 1.5 times as much in.
  const Topology plain_switch(cluster_of(nvswitch_node(), 8));
  const auto longer = [&](const Topology& topology, ExpertDispatch dispatch, double imbalance) {
    CollectiveCall even = tokens(dispatch, 8, 64), hot = tokens(dispatch, 8, 64, imbalance);
    even.size = hot.size = 1.0_GB;  // latency does not count
    return seconds(hot, topology) / seconds(even, topology);
  };
  CHECK(longer(plain_switch, plain, 1.5) == Approx(1.5).epsilon(0.01));
  CHECK(longer(plain_switch, plain, 1.0) == Approx(1.0));
  // A leaf for each node, an eighth of its cards upwards: the node's load decides. The largest of 8 normal deviates is
  // the quantile of 7.625/8.25, 1.4342, of 64 that of 63.625/64.25, 2.337: 1 + 0.5 · 1.4342 / (2.337 · √8) = 1.1085.
  Cluster narrow = cluster_of(nvswitch_node(), 8);
  narrow.network.fabric.shape = FatTree{1, 0, 8.0, 1.0, false};
  CHECK(longer(Topology(narrow), plain, 1.5) == Approx(1.1085).epsilon(0.002));
  // Once to each node: a hot node gets no more than all tokens, 1 / (1 − (7/8)^8) = 1.5235 times the mean.
  CHECK(longer(plain_switch, own_rail, 1.5) == Approx(1.1085).epsilon(0.002));
  CHECK(longer(plain_switch, own_rail, 40.0) == Approx(1.5235).epsilon(0.002));
}

TEST_CASE("all-to-all among many ranks loads every link as all its pairs would") {
  const Topology topology(cluster_of(nvswitch_node(), 12));
  std::vector<int> uneven = iota(61);  // 7 nodes of 8, one of 5, and 8 single ranks of the others
  for (const int rank : {64, 65, 72, 80, 88, 89, 90, 91}) uneven.push_back(rank);
  for (const std::vector<int>& ranks : {iota(96), uneven}) {
    const Bytes size = Bytes(1e6 * static_cast<double>(ranks.size()));
    LoweredCollective::Phase pairs{5.0_us, {}, 1};
    for (const int a : ranks) {
      for (const int b : ranks) {
        if (a != b) pairs.flows.push_back({a, b, 1.0_MB});
      }
    }
    const LoweredCollective lowered =
        lower(call_of(SyncAlgorithm::naive, size, ranks, CollectiveOperation::all_to_all), topology, Calibration{});
    REQUIRE(lowered.phases.size() == 1);
    CHECK(lowered.phases.front().flows.size() < 10 * ranks.size());
    check_equal_loads(lowered.phases.front(), pairs, topology);
  }
  // Hierarchically: 12 MB to each neighbour, then 8 MB to the same place of each other node.
  LoweredCollective::Phase inside{2.0_us, {}, 1}, across{5.0_us, {}, 1};
  for (int a = 0; a < 96; ++a) {
    for (int b = 0; b < 96; ++b) {
      if (a != b && a / 8 == b / 8) inside.flows.push_back({a, b, 12.0_MB});
      if (a != b && a % 8 == b % 8) across.flows.push_back({a, b, 8.0_MB});
    }
  }
  const LoweredCollective lowered =
      lower(call_of(SyncAlgorithm::hierarchical, 96.0_MB, iota(96), CollectiveOperation::all_to_all), topology,
            Calibration{});
  REQUIRE(lowered.phases.size() == 2);
  check_equal_loads(lowered.phases[0], inside, topology);
  check_equal_loads(lowered.phases[1], across, topology);
}

TEST_CASE("all-to-all over a fabric whose links depend on the pair keeps the pairs") {
  // Four leaves of three nodes, with half as much bandwidth up as down: neighbours alone would not show what that
  // costs.
  Cluster cluster = cluster_of(nvswitch_node(), 12);
  cluster.network.fabric.shape = FatTree{3, 0, 2.0, 1.0, false};
  const Topology topology(cluster);
  LoweredCollective::Phase pairs{Seconds(0.0), {}, 1};
  for (int a = 0; a < 96; ++a) {
    for (int b = 0; b < 96; ++b) {
      if (a == b) continue;
      pairs.flows.push_back({a, b, 1.0_MB});
      pairs.latency = std::max(pairs.latency, topology.latency(a, b));
    }
  }
  const LoweredCollective lowered =
      lower(call_of(SyncAlgorithm::naive, 96.0_MB, iota(96), CollectiveOperation::all_to_all), topology, Calibration{});
  REQUIRE(lowered.phases.size() == 1);
  check_equal_loads(lowered.phases.front(), pairs, topology);
  // More than 1,024 ranks are taken by node.
  Cluster large = cluster_of(nvswitch_node(), 132);
  large.network.fabric.shape = FatTree{12, 0, 2.0, 1.0, false};
  const Topology many(large);
  const LoweredCollective by_node =
      lower(call_of(SyncAlgorithm::naive, 1056.0_MB, iota(1056), CollectiveOperation::all_to_all), many, Calibration{});
  // A leaf's 96 ranks send 1 MB to each of 960 others over 96 cards of 25 GB/s with half as much upwards: 76.8 ms.
  CHECK(uncontended_time(by_node, many).value() == Approx(0.0768).epsilon(0.01));
  CHECK(by_node.phases.front().flows.size() < 150'000);
}
