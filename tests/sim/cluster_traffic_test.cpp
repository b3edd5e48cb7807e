// Effects that need the whole cluster: traffic of all ranks on links that they share, and slow parts anywhere.
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;

namespace {

const char* const gpt = R"(
cluster: { node: dgx-a100-80gb, nodes: 8 }
workload:
  train:
    model: { family: gpt, layers: 32, hidden: 6144, heads: 48, vocabulary: 51200, sequence: 2048 }
    global_batch: 64
    micro_batch: 1
    precision: bf16
    optimizer: adamw
plan: { tensor: 8, data: 8 }
)";

Scenario scenario_of(const std::vector<std::string>& overrides) {
  return load_scenario_text(gpt, "gpt.yaml", overrides);
}

TrainResult train(const std::vector<std::string>& overrides, Fidelity fidelity = Fidelity::flows) {
  return *predict(scenario_of(overrides), fidelity).train();
}

double step_of(const std::vector<std::string>& overrides, Fidelity fidelity = Fidelity::flows) {
  return train(overrides, fidelity).step_time.value();
}

/// 32 layers over 64 or more GPUs, eight samples a replica.
std::vector<std::string> replicas(int tensor, int data, int zero) {
  return {fmt::format("cluster.nodes={}", tensor * data / 8),
          fmt::format("plan.tensor={}", tensor),
          fmt::format("plan.data={}", data),
          fmt::format("plan.zero={}", zero),
          "plan.sequence_parallel=true",
          fmt::format("workload.train.global_batch={}", 8 * data)};
}

}  // namespace

TEST_CASE("a slow link inside a node costs the same in every node") {
  // Tensor parallelism runs inside each node; all replicas wait for the one whose NVLink is at a quarter.
  const double whole = step_of({});
  const auto with_fault = [](int node) {
    return step_of({fmt::format("cluster.faults=[{{ node: {}, link: gpu2-nvswitch, bandwidth: 25 % }}]", node)});
  };
  const double first = with_fault(0);
  CHECK(first > 1.2 * whole);
  for (const int node : {3, 7}) CHECK(with_fault(node) == Approx(first).epsilon(1e-9));
}

TEST_CASE("a slow GPU stretches the kernels of its replica, and all wait for it") {
  // One of eight data-parallel GPUs runs at 80 %: the step's kernels take 1 / 0.8 as long.
  const std::vector<std::string> plain = {"cluster.nodes=1", "plan.tensor=1", "plan.data=8",
                                          "workload.train.model.layers=4"};
  for (const int gpu : {0, 6}) {
    std::vector<std::string> slow = plain;
    slow.push_back(fmt::format("cluster.faults=[{{ node: 0, gpu: {}, speed: 80 % }}]", gpu));
    const TrainResult fast = train(plain), result = train(slow);
    CHECK(result.breakdown.compute.value() == Approx(fast.breakdown.compute.value() / 0.8).epsilon(0.01));
    CHECK(result.step_time > fast.step_time * 1.15);
  }
}

TEST_CASE("pipeline messages of all replicas share a leaf's way up") {
  // Four nodes of eight GPUs are a stage and a leaf: each hop sends 32 x 25.2 MB (2,048 tokens of 6,144 two-byte
  // numbers) over 32 cards of 25 GB/s divided by 16. A rank by itself would have its card.
  const Scenario scenario = scenario_of({"cluster.nodes=16", "plan.tensor=1", "plan.pipeline=4", "plan.data=32",
                                         "workload.train.global_batch=256",
                                         "cluster.network.fabric={ kind: fat_tree, nodes_per_leaf: 4, "
                                         "oversubscription: 16 }"});
  const test::BuiltStep built(scenario);
  const double up = 32 * 25e9 * scenario.cluster.network.efficiency / 16;
  const Step::Transfer& hop = built.step.transfers[static_cast<std::size_t>(built.step.activations.front())];
  REQUIRE(hop.parts.size() == 1);
  CHECK(hop.parts.front().uncontended.value() == Approx(32 * 2048.0 * 6144 * 2 / up).epsilon(0.05));
}

TEST_CASE("context groups that cross a leaf are as much slower as its way up is narrow") {
  // Pairs of nodes; with three nodes on a leaf every other pair is cut in two. Inside a leaf eight cards serve a pair;
  // between leaves they share 24 cards' bandwidth divided by 16: 1.5 cards for 8.
  const Scenario scenario =
      scenario_of({"cluster.nodes=12", "plan.context=2", "plan.data=6", "workload.train.global_batch=48",
                   "cluster.network.fabric={ kind: fat_tree, nodes_per_leaf: 3, "
                   "oversubscription: 16 }"});
  const test::BuiltStep built(scenario);
  double fastest = 1e9, slowest = 0.0;
  for (const Step::Transfer& transfer : built.step.transfers) {
    if (transfer.name != "collectives inside layers" || transfer.parts.size() < 2) continue;
    for (const Step::Transfer::Part& part : transfer.parts) {
      const Flow& flow = part.lowered.phases.front().flows.front();
      if (built.topology.node_of(flow.source) == built.topology.node_of(flow.destination)) continue;  // tensor
      const Seconds moving = part.uncontended - part.lowered.phases.front().latency;
      const double rate = moving.value() / flow.bytes.value();
      fastest = std::min(fastest, rate);
      slowest = std::max(slowest, rate);
    }
  }
  CHECK(slowest / fastest == Approx(8 / 1.5).epsilon(0.05));
}

TEST_CASE("context ranks wait for all-to-alls of heads and for gathered keys, and not for a ring's") {
  // A layer of 32 has two all-to-alls of queries and output and two of keys and values in each pass, here alike: 1,024
  // tokens of 6,144 in bf16, of which a rank sends 7/8 over its NVLinks. Gradients follow when all is computed.
  const auto by = [](const std::string& method, Fidelity fidelity) {
    return train({"cluster.nodes=1", "plan={ context: 8, context_method: " + method + ", sync: { overlap: false } }",
                  "workload.train.global_batch=1", "workload.train.model.sequence=8192",
                  "workload.train.model.vocabulary=1024", "workload.train.precision=bf16"},
                 fidelity);
  };
  const Scenario alone = load_scenario_text(
      "cluster: { node: dgx-a100-80gb, nodes: 1 }\n"
      "workload: { collective: { operation: all_to_all, size: 12582912 B, ranks: 8 } }\n",
      "alone.yaml");
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const TrainResult ulysses = by("ulysses", fidelity), ring = by("ring", fidelity);
    const InsideTraffic& traffic = ulysses.inside_layers.at("context-parallel all-to-all");
    CHECK(traffic.count == 32 * 8);
    CHECK(traffic.sent.value() == Approx(32 * 8 * 12582912.0 * 7 / 8));
    const Seconds each = predict(alone, fidelity).collective()->time;
    CHECK(traffic.alone.value() == Approx(32 * 8 * each.value()).epsilon(1e-6));
    CHECK(ulysses.communication.at("collectives inside layers").exposed.value() == Approx(traffic.alone.value()));
    CHECK(ring.communication.at("collectives inside layers").exposed < 0.5 * traffic.alone);
    const CommunicationTime gathered = by("all_gather", fidelity).communication.at("collectives inside layers");
    CHECK(gathered.exposed.value() == Approx(gathered.total.value()));
  }
}

TEST_CASE("tensor-parallel and gradient traffic share the NICs") {
  // 16 tensor-parallel ranks over two nodes: the collectives of the last backward pass meet the gradients of the
  // buckets before, as long as that pass lasts. That costs at least a tenth and at most all of what is hidden there.
  for (const int cards : {8, 2}) {
    const std::vector<std::string> plan = {"cluster.nodes=16", "plan.tensor=16", "plan.data=8",
                                           fmt::format("cluster.network.nics_per_node={}", cards),
                                           "plan.sync.bucket=25 MB"};
    const TrainResult flows = train(plan), alone = train(plan, Fidelity::estimate);
    const CommunicationTime& gradients = alone.communication.at("gradient all-reduce");
    const double hidden = (gradients.total - gradients.exposed).value();
    const double growth = (flows.step_time - alone.step_time).value();
    CHECK(growth > 0.1 * hidden);
    CHECK(growth < hidden);
  }
}

TEST_CASE("others' traffic on a card slows the tensor-parallel collectives that use it") {
  // A flow that takes what it can gets half of the card while a ring uses it: its collectives take up to twice as long.
  const std::vector<std::string> plan = {"cluster.nodes=16", "plan.tensor=16", "plan.data=8"};
  std::vector<std::string> disturbed = plan;
  disturbed.emplace_back("background=[{ from: gpu8, to: gpu40 }]");
  const Seconds quiet = train(plan).communication.at("collectives inside layers").total;
  const Seconds beside = train(disturbed).communication.at("collectives inside layers").total;
  CHECK(beside > quiet * 1.5);
  CHECK(beside < quiet * 2.0);
}

TEST_CASE("jitter costs what the slowest of all devices is slower") {
  // Compute times spread by 1 %: the slowest of 8 is 1.42 % slower than the mean on average, of 1,024 3.2 % (expected
  // largest of n normal deviates: 1.42, 3.23).
  for (const auto& [data, expected] : {std::pair(8, 0.0142), std::pair(1024, 0.0323)}) {
    CAPTURE(data);
    std::vector<std::string> plan = replicas(1, data, 0);
    plan.emplace_back("workload.train.model.layers=4");
    const TrainResult even = train(plan);
    plan.emplace_back("cluster.jitter={ compute: 1 %, seed: 3 }");
    const TrainResult uneven = train(plan);
    REQUIRE(uneven.spread);
    const double compute = (even.breakdown.compute + even.breakdown.optimizer) / even.step_time;
    CHECK(uneven.step_time / even.step_time - 1.0 == Approx(expected * compute).epsilon(0.2));
    CHECK(uneven.spread->p50 > even.step_time);
    CHECK(uneven.spread->p50 <= uneven.spread->p90);
    CHECK(uneven.spread->p90 <= uneven.spread->p99);
  }
}

TEST_CASE("every step of every collective as a flow gives what whole phases give") {
  // 64 GPUs: two tensor-parallel ranks, four stages, eight replicas over two nodes each; all of it shares the cards.
  const std::vector<std::string> plan = {"plan.tensor=2", "plan.pipeline=4", "plan.data=8",
                                         "workload.train.model.layers=8"};
  for (const char* algorithm : {"ring", "tree", "halving_doubling", "hierarchical"}) {
    for (const char* cluster : {"cluster.faults=[]", "cluster.faults=[{ node: 1, card: 2, bandwidth: 20 % }]",
                                "cluster.network.oversubscription=4"}) {
      std::vector<std::string> overrides = plan;
      overrides.push_back(fmt::format("plan.sync.algorithm={}", algorithm));
      overrides.emplace_back(cluster);
      INFO(algorithm << ", " << cluster);
      // Which flows meet on narrow links differs by when each step starts.
      CHECK(step_of(overrides, Fidelity::steps) == Approx(step_of(overrides)).epsilon(3e-3));
    }
  }
}
