// Fabrics that draw routes: what hashes cost, and that nobody is faster for them.
#include "model/collectives/contention.hpp"
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

using Overrides = std::vector<std::string>;

/// Two machines of eight cards of 25 GB/s, each on a leaf of its own: GPU i of one sends to GPU i of the other.
constexpr const char* pairs = R"(
cluster:
  node: dgx-a100-80gb
  nodes: 2
  nccl: none
  network: { nic_bandwidth: 200 Gbit/s, nics_per_node: 8, efficiency: 1, latency: 1 ns, fabric: { kind: fat_tree, nodes_per_leaf: 1, uplinks: 8 } }
workload: { collective: { operation: send_receive, ranks: 16, groups: 8, layout: strided, size: 1 GB, algorithm: ring } }
)";

/// Four machines on two leaves: gradients of all, and stages on different leaves.
constexpr const char* training = R"(
cluster:
  node: dgx-a100-80gb
  nodes: 4
  network: { fabric: { kind: fat_tree, nodes_per_leaf: 2, uplinks: 16 } }
workload:
  train:
    model: { family: gpt, layers: 8, hidden: 4096, heads: 32, vocabulary: 51200, sequence: 2048 }
    global_batch: 64
    micro_batch: 2
plan: { tensor: 8, pipeline: 2 }
)";

Scenario scenario_of(const char* text, Overrides overrides) { return load_scenario_text(text, "test.yaml", overrides); }

Result routed(const char* text, const std::string& routing, Fidelity fidelity, Overrides overrides = {}) {
  overrides.push_back("cluster.network.fabric.routing=" + routing);
  return predict(scenario_of(text, overrides), fidelity);
}

std::string seed(int number) { return "cluster.network.fabric.seed=" + std::to_string(number); }

}  // namespace

TEST_CASE(
    "Eight connections each way on eight uplinks by hash: as long as the fullest uplink, in the middle three times") {
  // 1 GB at 25 GB/s, where each has an uplink for itself.
  const double alone = 0.04;
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows, Fidelity::steps}) {
    INFO(name(fidelity));
    CHECK(predict(scenario_of(pairs, {}), fidelity).time().value() == Approx(alone).epsilon(1e-4));
    CHECK(routed(pairs, "adaptive", fidelity).time().value() == Approx(alone).epsilon(1e-4));
    const Result hashed = routed(pairs, "hash", fidelity);
    // Of eight balls in eight bins none has more than 2 with probability 0.50, 3 with 0.91, 4 with 0.990; twice that,
    // one for each direction: 0.25, 0.83, 0.980. The draw in the middle has three, the slowest of forty four or five.
    REQUIRE(hashed.routing.has_value());
    CHECK(hashed.routing->rule == "hash");
    CHECK(hashed.routing->draws == 40);
    CHECK(hashed.time().value() == Approx(3 * alone).epsilon(1e-4));
    CHECK(hashed.routing->p50 == hashed.time());
    CHECK(hashed.routing->p99.value() > 3.5 * alone);
    CHECK(hashed.routing->p99.value() < 5.1 * alone);
  }
}

TEST_CASE("Wide cards on narrow uplinks: adaptive routing gives a connection one at a time, perfect routing all") {
  // A card's 25 GB/s over 32 uplinks of 6.25: four times as long by one of them.
  const Overrides narrow{"cluster.network.fabric.uplinks=32"};
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    CHECK(routed(pairs, "perfect", fidelity, narrow).time().value() == Approx(0.04).epsilon(1e-4));
    CHECK(routed(pairs, "adaptive", fidelity, narrow).time().value() == Approx(0.16).epsilon(1e-4));
    CHECK(routed(pairs, "hash", fidelity, narrow).time().value() > 0.16 * (1.0 - 1e-4));
  }
}

TEST_CASE("No routing is faster than one that leaves more choice: hash, adaptive, perfect") {
  const std::vector<std::pair<const char*, Overrides>> scenarios = {
      {pairs, {}},
      {pairs, {"workload.collective.groups=1", "workload.collective.operation=all_reduce"}},
      {pairs, {"workload.collective.groups=1", "workload.collective.operation=all_to_all"}},
      {pairs,
       {"workload.collective.groups=1", "workload.collective.operation=all_gather",
        "workload.collective.algorithm=auto", "cluster.network.fabric.uplinks=12"}},
      {training, {}},
      {training, {"plan={ tensor: 4, pipeline: 2, interleave: 2, zero: 1 }"}},
      {training, {"plan={ tensor: 1, zero: 3 }"}},
      {training, {"plan={ tensor: 16 }", "cluster.network.fabric.nodes_per_leaf=1"}},
      {training, {"cluster.network.fabric.nodes_per_leaf=1", "cluster.network.fabric.nodes_per_pod=2"}},
      {training,
       {"plan={ tensor: 8, pipeline: 4, pipeline_messages: blocking }", "cluster.network.fabric.oversubscription=2"}},
  };
  for (const auto& [text, overrides] : scenarios) {
    for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
      Overrides with_seed = overrides;
      const double perfect = routed(text, "perfect", fidelity, overrides).time().value();
      const double adaptive = routed(text, "adaptive", fidelity, overrides).time().value();
      with_seed.push_back(seed(7));
      const Result hashed = routed(text, "hash", fidelity, with_seed);
      INFO(name(fidelity) << " " << (overrides.empty() ? "" : overrides.front()));
      CHECK(perfect <= adaptive * (1.0 + 1e-9));
      CHECK(adaptive <= hashed.time().value() * (1.0 + 1e-6));
      REQUIRE(hashed.routing);
      CHECK(hashed.routing->p50 <= hashed.routing->p90);
      CHECK(hashed.routing->p90 <= hashed.routing->p99);
    }
  }
}

TEST_CASE("Valiant's routing relieves two groups that talk to each other alone, and costs even traffic twice its way") {
  const char* fly = R"(
cluster:
  node: dgx-a100-80gb
  nodes: 16
  nccl: none
  network: { nic_bandwidth: 100 Gbit/s, nics_per_node: 1, efficiency: 1, latency: 1 ns, fabric: { kind: dragonfly, nodes_per_router: 1, routers_per_group: 2, groups: 8, global_links_per_router: 7, local_bandwidth: 1 TB/s, global_bandwidth: 12.5 GB/s } }
workload: { collective: { operation: send_receive, ranks: 128, groups: 64, layout: strided, size: 10 MB, algorithm: ring } }
)";
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    // Group g sends to group g + 4 alone. 16 connections share one of the two links between them, as their routers'
    // numbers are equal: 160 MB at 12.5 GB/s.
    const Result minimal = routed(fly, "minimal", fidelity);
    CHECK_FALSE(minimal.routing);
    CHECK(minimal.time().value() == Approx(12.8e-3).epsilon(1e-3));
    // By six other groups and both links: 2 · 128 ways over 96 links, 2.7 each, and about eight on the fullest. A
    // card's own 80 MB take 6.4 ms.
    const Result valiant = routed(fly, "valiant", fidelity);
    REQUIRE(valiant.routing);
    CHECK(valiant.routing->rule == "valiant");
    CHECK(valiant.time().value() >= 6.4e-3 * (1.0 - 1e-6));
    CHECK(valiant.time() < minimal.time() * 0.75);
  }
  // Everybody to everybody over links a tenth as wide: two of them for each message instead of one.
  const Overrides even{"workload.collective.groups=1", "workload.collective.operation=all_to_all",
                       "cluster.network.fabric.global_bandwidth=1 GB/s"};
  const double ratio =
      routed(fly, "valiant", Fidelity::estimate, even).time() / routed(fly, "minimal", Fidelity::estimate, even).time();
  CHECK(ratio > 1.8);
  CHECK(ratio < 3.0);
}

TEST_CASE("Over hashed uplinks an estimate is what flows take, little traffic of others beside it or none") {
  constexpr const char* replicas = R"(
cluster: { node: dgx-h100, nodes: 4, network: { fabric: { kind: fat_tree, nodes_per_leaf: 2, uplinks: 8 } } }
workload:
  train:
    model: { family: llama, layers: 8, hidden: 2048, heads: 16, kv_heads: 4, vocabulary: 32000, sequence: 1024 }
    global_batch: 16
    micro_batch: 1
plan: { tensor: 2, zero: 0 }
)";
  const std::string little = "background=[{ from: gpu8, to: gpu10, rate: 1 MB/s }]";
  for (const char* oversubscription : {"1", "2", "4"}) {
    const Overrides fabric{std::string("cluster.network.fabric.oversubscription=") + oversubscription};
    Overrides beside = fabric;
    beside.push_back(little);
    INFO(oversubscription << " : 1");
    const double flows = routed(replicas, "hash", Fidelity::flows, fabric).time().value();
    CHECK(routed(replicas, "hash", Fidelity::estimate, fabric).time().value() == Approx(flows).epsilon(1e-3));
    CHECK(routed(replicas, "hash", Fidelity::estimate, beside).time().value() == Approx(flows).epsilon(1e-3));
  }
}

TEST_CASE("A transfer of which one part alone moves takes what that part takes over the drawn routes") {
  const Scenario scenario = scenario_of(pairs, {"cluster.network.fabric.routing=hash"});
  const Topology planned(scenario.cluster);
  LoweredCollective::Phase phase;
  for (int gpu = 0; gpu < 8; ++gpu) phase.flows.push_back({gpu, gpu + 8, Bytes(1e9)});
  const LoweredCollective moving{"pairs", {phase}};
  TaskGraph::Builder builder;
  const auto add = [&](Seconds alone, const LoweredCollective& flows, int number) {
    LinkShare links;
    links.transfer = links.among = 0;
    links.number = number;
    const BlockId block = builder.add_block({"part", Category::communication, alone, flows, {}, nullptr, {}, links});
    builder.add_task({block, builder.add_resource({"stream", Resource::Kind::communication_stream})});
  };
  add(uncontended_time(moving, planned), moving, 0);
  add(Seconds(0.0), {"nothing", {}}, 1);
  const TaskGraph graph = std::move(builder).build();
  for (int draw = 0; draw < 5; ++draw) {
    const Topology drawn(scenario.cluster, draw);
    CHECK(run_uncontended(graph, planned, drawn, {}).makespan.value() ==
          Approx(uncontended_time(moving, drawn).value()).epsilon(1e-9));
  }
}
