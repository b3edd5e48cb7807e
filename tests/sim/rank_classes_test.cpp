// Ranks that behave alike are simulated once: the same to the last digits as every rank by itself.
#include "model/base/number.hpp"
#include "model/scenario/load/load.hpp"
#include "model/training/pricing/build_step.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/property/random.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

const char* const small = R"(
cluster: { node: dgx-a100-80gb, nodes: 1 }
workload:
  train:
    model: { family: gpt, layers: 8, hidden: 8192, heads: 64, vocabulary: 32768, sequence: 2048 }
    global_batch: 64
    micro_batch: 1
    precision: bf16
    optimizer: adamw
)";

std::string random_fabric(Random& random) {
  switch (random() % 4) {
    case 0:
      return fmt::format("{{ kind: fat_tree, nodes_per_leaf: {}, oversubscription: {} }}", 1 + random() % 3,
                         one_of(random, {1, 4, 16}));
    case 1:
      return fmt::format("{{ kind: fat_tree, nodes_per_leaf: {}, oversubscription: 2, rails: true }}",
                         1 + random() % 3);
    default:
      return "";
  }
}

std::string random_fault(Random& random, int nodes) {
  const auto node = random() % static_cast<unsigned>(nodes);
  switch (random() % 4) {
    case 0:
      return fmt::format("{{ node: {}, gpu: {}, speed: {} % }}", node, random() % 4, 50 + random() % 50);
    case 1:
      return nodes > 1 ? fmt::format("{{ node: {}, card: {}, bandwidth: 30 % }}", node, random() % 8) : "";
    case 2:
      return fmt::format("{{ node: {}, link: gpu{}-nvswitch, bandwidth: 25 % }}", node, random() % 8);
    default:
      return "";
  }
}

/// `nodes` of eight GPUs, or as many GPUs on nodes of several kinds; how many nodes these are.
std::pair<std::string, int> random_cluster(Random& random, int nodes) {
  const int others = nodes > 1 && random() % 3 == 0 ? 1 + static_cast<int>(random() % static_cast<unsigned>(nodes)) : 0;
  if (others == 0) return {fmt::format("cluster.nodes={}", nodes), nodes};
  const std::string first = others < nodes ? fmt::format("{{ node: dgx-a100-80gb, nodes: {} }}, ", nodes - others) : "";
  const int halves = one_of(random, {1, 2});  // eight GPUs on one node, or on two
  return {fmt::format("cluster={{ groups: [ {}{{ node: dgx-h100, nodes: {}, gpus_per_node: {} }} ] }}", first,
                      others * halves, 8 / halves),
          nodes - others + others * halves};
}

/// A plan for at most 64 GPUs, on a cluster that may have slow parts, traffic of others and an oversubscribed fabric.
std::vector<std::string> random_overrides(Random& random) {
  for (;;) {
    const int eights = one_of(random, {1, 2, 4, 6, 8});
    const int tensor = one_of(random, {1, 2, 4, 8, 16}), context = one_of(random, {1, 1, 2});
    const int pipeline = one_of(random, {1, 1, 2, 4}), zero = one_of(random, {0, 1, 3});
    const int gpus = eights * 8, model = tensor * context * pipeline;
    if (gpus % model != 0 || (pipeline > 1 && zero == 3)) continue;
    const int data = gpus / model;
    const auto [cluster, nodes] = random_cluster(random, eights);
    std::vector<std::string> overrides = {
        cluster,
        fmt::format("plan={{ tensor: {}, context: {}, pipeline: {}, data: {}, zero: {}, sequence_parallel: {} }}",
                    tensor, context, pipeline, data, zero, tensor > 1 && random() % 2 == 0),
        fmt::format("workload.train.global_batch={}", data * (pipeline == 1 ? 2 : 4)),
        fmt::format("plan.sync.bucket={} MB", one_of(random, {4, 25, 1000}))};
    if (data * context % 2 == 0 && random() % 3 == 0) {
      overrides.emplace_back("workload.train.model.experts=8");
      overrides.emplace_back("workload.train.model.experts_per_token=2");
      overrides.emplace_back("plan.expert=2");
      overrides.push_back(fmt::format("plan.expert_dispatch={}", name(static_cast<ExpertDispatch>(eights % 3))));
      overrides.push_back(fmt::format("plan.expert_comm_overlap={}", tensor > 1));
      if (pipeline > 1) overrides.emplace_back("workload.train.model.expert_imbalance=1.3");
    }
    if (random() % 2 == 0) overrides.push_back("plan.order=" + random_order(random));
    if (random() % 3 == 0) {
      const bool alike = cluster.starts_with("cluster.nodes");
      const int more = nodes + (alike ? static_cast<int>(random() % 3) : 0);
      if (alike) overrides.front() = fmt::format("cluster.nodes={}", more);
      overrides.push_back("plan.placement=" + random_placement(random, nodes, more));
    }
    const std::string fabric = nodes > 1 ? random_fabric(random) : "";
    if (!fabric.empty()) overrides.push_back("cluster.network.fabric=" + fabric);
    if (nodes > 1 && random() % 3 == 0) {
      overrides.push_back(fmt::format("cluster.network.nics_per_node={}", one_of(random, {2, 4})));
    } else if (const std::string fault = random_fault(random, nodes); !fault.empty()) {
      overrides.push_back("cluster.faults=[" + fault + "]");
    }
    if (random() % 3 == 0) {
      overrides.push_back(fmt::format("background=[{{ from: gpu{}, to: gpu{}, rate: 5 GB/s }}]",
                                      random() % static_cast<unsigned>(gpus / 2),
                                      gpus / 2 + static_cast<int>(random() % static_cast<unsigned>(gpus / 2))));
    }
    return overrides;
  }
}

struct Simulated {
  Seconds step;
  std::size_t rank_classes = 0;
  std::ptrdiff_t transfers = 0;  ///< of the first rank class, one after the other
};

Simulated simulate_step(const Scenario& scenario, Symmetry symmetry, Fidelity fidelity) {
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  const Topology topology(scenario.cluster);
  const Model model = build_model(train.model, build_options(train, scenario.plan));
  const Step step = build_step(scenario, train, model, topology, Recipes::none, InsideLayers::merged, symmetry);
  const StepGraph graph = step_graph(step);
  const Execution execution = fidelity == Fidelity::estimate
                                  ? run(graph.graph)
                                  : simulate(graph.graph, step.few_nodes.value_or(topology), fidelity,
                                             scenario.background, symmetry == Symmetry::used);
  const auto of_first_class = [&](const StepGraph::Transfer& transfer) {
    return step.transfers[at_index(transfer.transfer)].parts[transfer.part].rank_classes.front() == 0;
  };
  return {execution.makespan, step.rank_classes.size(), std::ranges::count_if(graph.transfers, of_first_class)};
}

}  // namespace

TEST_CASE("classes of ranks change nothing: random plans, slow parts, fabrics and others' traffic") {
  Random random(2026);
  for (int i = 0; i < 200; ++i) {
    const std::vector<std::string> overrides = random_overrides(random);
    CAPTURE(i, overrides);
    const Scenario scenario = load_scenario_text(small, "small.yaml", overrides);
    // If GPUs share NICs, groups of a class share links: together they advance in proportion, apart each as fast as
    // it can, which differs where they meet others.
    const Cluster& cluster = scenario.cluster;
    const bool share_cards = cluster.network.nics_per_node < cluster.gpus_per_node;
    for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
      const Simulated folded = simulate_step(scenario, Symmetry::used, fidelity);
      const Simulated apart = simulate_step(scenario, Symmetry::ignored, fidelity);
      CHECK(apart.rank_classes == static_cast<std::size_t>(plan_gpus(scenario.plan, scenario.cluster)));
      // SimGrid counts whole bytes: on links shared at 1 GB/s and more, half a nanosecond for each transfer.
      const double rounding = fidelity == Fidelity::flows ? 0.5e-9 * number(apart.transfers) : 0.0;
      CHECK(folded.step.value() == Approx(apart.step.value())
                                       .epsilon(share_cards && fidelity == Fidelity::flows ? 1e-3 : 1e-9)
                                       .margin(rounding));
    }
  }
}

TEST_CASE("classes of ranks change nothing under split schedules, hybrid shards and chunked collectives") {
  const std::string faults[] = {"[]", "[{ node: 1, gpu: 3, speed: 80 % }]", "[{ node: 2, card: 1, bandwidth: 30 % }]",
                                "[{ node: 3, link: gpu5-nvswitch, bandwidth: 25 % }]"};
  const std::vector<std::string> plans[] = {
      {"plan.schedule=zero_bubble", "plan.pipeline=4", "plan.tensor=4"},
      {"plan.schedule=zero_bubble", "plan.pipeline=4", "plan.interleave=2", "plan.zero=1"},
      {"plan.schedule=dualpipe", "plan.pipeline=4", "plan.tensor=2", "plan.sequence_parallel=true"},
      {"plan.schedule=dualpipe", "plan.pipeline=2", "plan.zero=1", "plan.sync.overlap=false"},
      {"plan.tensor=4", "plan.sequence_parallel=true", "plan.tensor_overlap=true"},
      {"plan.zero={ stage: 3, shard: 8 }"},
      {"plan.zero={ stage: 2, shard: 4 }", "plan.tensor=2"}};
  for (const std::vector<std::string>& plan : plans) {
    for (const std::string& fault : faults) {
      std::vector<std::string> overrides = plan;
      overrides.insert(overrides.begin(),
                       {"cluster.nodes=4", "workload.train.global_batch=128", "plan.sync.bucket=25 MB"});
      if (fault != "[]") overrides.push_back("cluster.faults=" + fault);
      CAPTURE(overrides);
      const Scenario scenario = load_scenario_text(small, "small.yaml", overrides);
      for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
        const Simulated folded = simulate_step(scenario, Symmetry::used, fidelity);
        const Simulated apart = simulate_step(scenario, Symmetry::ignored, fidelity);
        CHECK(folded.step.value() == Approx(apart.step.value()).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("transfers of the same groups count each by itself where their flows go other ways or differ in size") {
  // Pairs of nodes, one GPU each, that send to and fro; a fifth sends to the first pair's second node all the time,
  // which only the way there meets. Two unequal messages tell the pairs apart as well, equal ones do not.
  const Topology topology(load_scenario_text(small, "small.yaml",
                                             {"cluster={ node: dgx-a100-80gb, nodes: 5, "
                                              "gpus_per_node: 1 }",
                                              "workload.train.global_batch=60"})
                              .cluster);
  const RankGroups pairs = {{0, 1}, {2, 3}};
  const std::vector<int> both = {0, 1}, stages = {0, 0, 0, 0, 0};
  const auto lowered = [](std::vector<Flow> flows) {
    LoweredCollective messages;
    messages.phases = std::vector<LoweredCollective::Phase>{{Seconds(0.0), std::move(flows)}};
    return messages;
  };
  const LoweredCollective back = lowered({{1, 0, Bytes(8.0)}, {3, 2, Bytes(8.0)}}),
                          there = lowered({{0, 1, Bytes(8.0)}, {2, 3, Bytes(8.0)}}),
                          unequal = lowered({{1, 0, Bytes(8.0)}, {3, 2, Bytes(4.0)}});
  const auto rank_classes = [&](std::vector<const LoweredCollective*> all,
                                const std::vector<BackgroundFlow>& background) {
    std::vector<GroupedTransfer> transfers;
    for (const LoweredCollective* one : all) transfers.push_back({0, 0, 0, &pairs, {{one, both}}});
    return classify(transfers, stages, std::vector<double>(5, 1.0), topology, background).rank_classes.size();
  };
  BackgroundFlow stranger;
  stranger.from.number = 4;
  stranger.to.number = 1;
  const std::size_t alike = rank_classes({&back}, {});
  CHECK(rank_classes({&back}, {stranger}) == alike);
  CHECK(rank_classes({&back, &there}, {}) == alike);
  CHECK(rank_classes({&back, &there}, {stranger}) > alike);
  CHECK(rank_classes({&back, &unequal}, {}) > alike);
}
