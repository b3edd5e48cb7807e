// Exchanges among many beside others' traffic: flows that stand for many connections count as many, whichever way the
// exchange is lowered.
#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/sim/predicted.hpp"

using namespace foretrain;
using namespace foretrain::test;
using namespace foretrain::test_graphs;
using namespace foretrain::test_nodes;

namespace {

CollectiveCall exchange(Bytes part, int ranks, SyncAlgorithm algorithm) {
  CollectiveCall call;
  call.operation = CollectiveOperation::all_to_all;
  call.algorithm = algorithm;
  call.size = part * static_cast<double>(ranks);
  call.groups = {iota(ranks)};
  return call;
}

Cluster nine_nodes() { return cluster_of(nvswitch_node(), 9); }

}  // namespace

TEST_CASE("a stranger takes from an exchange what one connection takes, among 64 ranks and among 65") {
  // Nine nodes of eight cards of 25 GB/s, 10 MB to each rank. Rank 0 of 64 sends 56 messages out of its node; with the
  // stranger's there are 57 on its card: 57 · 10 MB / 25 GB/s = 22.8 ms. Of 72 ranks it sends 64: 26 ms. The only rank
  // on the ninth node sends 64, and the stranger from there makes 65: 26 ms among 65 ranks. Among 66 both of the two
  // do.
  const Topology topology(nine_nodes());
  struct Row {
    int ranks, from, to;
    double milliseconds;
  };
  for (const auto& [ranks, from, to, milliseconds] :
       {Row{64, 0, 63, 22.8}, Row{65, 64, 0, 26.0}, Row{66, 65, 0, 26.0}, Row{72, 0, 63, 26.0}}) {
    const LoweredCollective lowered = lower(exchange(10.0_MB, ranks, SyncAlgorithm::naive), topology, Calibration{});
    for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows, Fidelity::steps}) {
      INFO(ranks << " ranks, fidelity " << static_cast<int>(fidelity));
      CHECK(took(lowered, topology, fidelity, {between_gpus(from, to)}) * 1e3 == Approx(milliseconds).epsilon(5e-3));
    }
  }
}

TEST_CASE("two exchanges of unequal width on the same cards share these by their connections") {
  // Two groups on the same 72 ranks, once all of them and once the first 16, 10 MB to each: rank 0's card carries 64
  // and 8 messages, each 1/72 of it. The small one is done after 72 · 10 MB / 25 GB/s = 28.8 ms, the large one then,
  // too.
  const Topology topology(nine_nodes());
  GraphMaker make(topology);
  make.communicate(make.stream(), lower(exchange(10.0_MB, 72, SyncAlgorithm::naive), topology, Calibration{}));
  make.communicate(make.stream(), lower(exchange(10.0_MB, 16, SyncAlgorithm::naive), topology, Calibration{}));
  const Execution execution = simulate(make.graph(), topology, Fidelity::flows);
  CHECK(execution.finish[0].value() == Approx(28.8e-3).epsilon(5e-3));
  CHECK(execution.finish[1].value() == Approx(28.8e-3).epsilon(5e-3));
}

TEST_CASE("one message beside 56 flows has 1/57, half or a lane of its own, as the network says") {
  // Rank 0 of 64 sends 56 messages of 10 MB out of its node, and one more to rank 8 for a pipeline: alone 0.4 ms.
  // Connection by connection it takes 57 times as long. With 56 connections of its own, or as traffic of a class of its
  // own, half of the card: twice as long. A lane of three times the weight has three quarters: 4/3.
  const auto message = [](Fairness fairness, int queue_pairs) {
    Cluster cluster = cluster_of(nvswitch_node(), 8);
    cluster.network.sharing = {fairness, queue_pairs};
    cluster.network.latency = Seconds(0.0);
    const Topology topology(cluster);
    LoweredCollective hop = flows_at_once(Seconds(0.0), {{0, 8, 10.0_MB}});
    share_links(hop, CollectiveOperation::send_receive, topology);
    GraphMaker make(topology);
    make.communicate(make.stream(), lower(exchange(10.0_MB, 64, SyncAlgorithm::naive), topology, Calibration{}));
    make.communicate(make.stream(), hop);
    return simulate(make.graph(), topology, Fidelity::flows).finish[1].value() / 0.4e-3;
  };
  CHECK(message(Fairness::flow, 1) == Approx(57.0).epsilon(0.01));
  CHECK(message(Fairness::flow, 56) == Approx(2.0).epsilon(0.01));
  CHECK(message(Fairness::traffic_class, 1) == Approx(2.0).epsilon(0.01));
  CHECK(message(Fairness::traffic_class, 3) == Approx(4.0 / 3.0).epsilon(0.01));
}

TEST_CASE("the same wires are as fast as one switch and as a tree of one leaf, rails, experts and strangers or not") {
  constexpr const char* alone = R"(
cluster: { node: dgx-h100, nodes: 4 }
workload: { collective: { operation: all_to_all, size: 1280 MB, ranks: 32 } }
background: [ { from: gpu0, to: gpu9 } ]
)";
  constexpr const char* experts = R"(
cluster: { node: dgx-h100, nodes: 4 }
workload:
  train:
    model: { family: llama, layers: 4, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 2048, experts: 32, experts_per_token: 4, ffn_hidden: 1024 }
    global_batch: 64
    micro_batch: 1
plan: { pipeline: 2, expert: 16, zero: 1 }
)";
  const auto on = [](const char* text, const std::string& fabric, const std::string& dispatch, Fidelity fidelity) {
    std::vector<std::string> overrides{"cluster.network.fabric=" + fabric};
    if (!dispatch.empty()) overrides.push_back("plan.expert_dispatch=" + dispatch);
    return predict(load_scenario_text(text, "wires.yaml", overrides), fidelity).time().value();
  };
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    for (const std::string dispatch : {"", "all_to_all", "deduplicated", "forwarded"}) {
      const char* text = dispatch.empty() ? alone : experts;
      INFO(dispatch << ", fidelity " << static_cast<int>(fidelity));
      const double one_switch = on(text, "{ kind: single_switch }", dispatch, fidelity);
      for (const char* leaf :
           {"{ kind: fat_tree, nodes_per_leaf: 4 }", "{ kind: fat_tree, nodes_per_leaf: 4, rails: true }"}) {
        CHECK(on(text, leaf, dispatch, fidelity) == Approx(one_switch).epsilon(1e-3));
      }
    }
  }
}
