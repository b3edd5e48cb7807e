// The cost of a failed part until it is repaired.
#include "model/scenario/load/load.hpp"
#include "reports/explain/what_if.hpp"
#include "sim/simulate.hpp"
#include "tests/reports/sample_results.hpp"
#include "tests/reports/whole.hpp"

using namespace foretrain;

namespace {

std::string words(const Fault& fault) {
  const std::string part = fault.gpu >= 0    ? fmt::format("gpu {}", fault.gpu)
                           : fault.card >= 0 ? fmt::format("card {}", fault.card)
                                             : fault.link;
  return (fault.node >= 0 ? fmt::format("node {} ", fault.node) : "") + part +
         (fault.failed ? " failed" : fmt::format(" {:.4g} %", 100.0 * fault.share));
}

/// Overrides for each part, a line each, and the resulting faults; scenarios are not loaded anew.
std::string set_of(const std::string& text) {
  const Scenario scenario = load_scenario_text(text, "parts.yaml");
  std::string lines;
  for (const WhatIf& loss : part_losses(scenario, [&](const std::vector<std::string>&) { return scenario; })) {
    lines += loss.name + ":";
    for (const std::string& one : loss.overrides) lines += " " + one;
    const bool goes_on = loss.overrides.empty() && loss.scenario;
    for (const Fault& fault : goes_on ? loss.scenario->cluster.faults : std::vector<Fault>()) {
      lines += " " + words(fault) + ";";
    }
    lines += (loss.why_not.empty() ? "" : " ") + loss.why_not + "\n";
  }
  return lines;
}

std::string cluster_of(const std::string& machines, const std::string& plan, const std::string& layers = "8") {
  return "cluster: { " + machines + " }\nworkload: { train: { model: { family: gpt, layers: " + layers +
         ", hidden: 1024, heads: 16, vocabulary: 1000, sequence: 128 }, global_batch: 960, micro_batch: 1, precision: "
         "bf16 } }\nplan: { " +
         plan + " }\n";
}

const std::string half_gpu = "one GPU at half speed: node 0 gpu 0 50 %;\n";
const std::string card = "one NIC: node 0 card 0 failed;\n";

/// As many replicas as whole ones fit on these machines, each with the samples that it had.
std::string restart(const char* part, int nodes, int replicas, int batch) {
  return fmt::format("{}: cluster.nodes={} plan.data={} workload.train.global_batch={}\n", part, nodes, replicas,
                     batch);
}

}  // namespace

TEST_CASE("No part that fails makes training faster") {
  const std::string text = R"(
cluster: { node: dgx-h100, nodes: 8, network: { fabric: { kind: fat_tree, nodes_per_leaf: 4, uplinks: 4 } } }
workload: { train: { model: llama2-7b, global_batch: 512, micro_batch: 8, precision: bf16 } }
)";
  const auto load = [&](const std::vector<std::string>& overrides) {
    return load_scenario_text(text, "parts.yaml", overrides);
  };
  const auto rate = [](const Scenario& scenario) {
    return predict(scenario, Fidelity::estimate, Detail::numbers).train()->samples_per_second;
  };
  const double whole = rate(load({}));
  for (const WhatIf& loss : part_losses(load({}), load)) {
    CAPTURE(loss.name, loss.why_not);
    REQUIRE(loss.scenario);
    CHECK(rate(*loss.scenario) <= whole * (1.0 + 1e-9));
    CHECK(loss.lost_machines == (loss.name == "one node" ? 1 : loss.name.starts_with("one leaf") ? 4 : 0));
  }
}

TEST_CASE("What fails is set beside what the cluster lacks already") {
  const std::string before =
      "{ node: 0, gpu: 0, speed: 50 % }, { node: 1, card: 0, bandwidth: 25 % }, { node: 1, card: 1, failed: true }, "
      "{ node: 0, link: gpu2>plx1, bandwidth: 50 % }";
  const std::string there = " node 0 gpu 0 50 %; node 1 card 0 25 %; node 1 card 1 failed; node 0 gpu2>plx1 50 %;";
  CHECK(set_of(cluster_of("node: dgx-a100-80gb, nodes: 2, faults: [ " + before + " ]", "tensor: 8, data: 2")) ==
        "one GPU at half speed:" + there + " node 0 gpu 0 50 %;\n" + "one NIC:" + there + " node 0 card 0 failed;\n" +
            restart("one node", 1, 1, 480));
}

TEST_CASE("What is lost follows what there is: cards, switches above one another, machines") {
  // One machine has nothing but GPUs to lose; two of one card no second one.
  CHECK(set_of(cluster_of("node: dgx-a100-80gb", "data: 8")) == half_gpu);
  CHECK(set_of(cluster_of("node: dgx-a100-80gb, nodes: 2, network: { nics_per_node: 1 }", "tensor: 4, context: 2")) ==
        half_gpu + restart("one node", 1, 1, 480));
  // Pipelines of seven GPUs over machines of four: without one there are 24, three pipelines on six machines.
  CHECK(set_of(cluster_of("node: dgx-a100-80gb, nodes: 7, gpus_per_node: 4, network: { nics_per_node: 1 }",
                          "pipeline: 7, data: 4", "28")) == half_gpu + restart("one node", 6, 3, 720));
  // Five machines below leaves of four: two leaves; below a leaf of eight there is no spine.
  const auto losses = [](const std::string& fabric) {
    const std::string text = set_of(cluster_of(
        "node: dgx-a100-80gb, nodes: 5, network: { nics_per_node: 2, fabric: { kind: fat_tree, " + fabric + " } }",
        "data: 40"));
    const std::string begin = half_gpu + card, end = restart("one node", 4, 32, 768);
    CHECK_THAT(text, Catch::StartsWith(begin) && Catch::EndsWith(end));
    return text.substr(begin.size(), text.size() - begin.size() - end.size());
  };
  const std::string leaf = restart("one leaf switch with 4 nodes", 1, 8, 192);
  CHECK(losses("nodes_per_leaf: 4, uplinks: 2") ==
        "one of 2 spine switches: leaf0-spine 50 %; leaf1-spine 50 %;\n" + leaf);
  // With hashed routing, the spine's cables are links with names of their own, and the others take what it carried.
  CHECK(losses("nodes_per_leaf: 4, uplinks: 2, routing: hash") ==
        "one of 2 spine switches: leaf0-spine0 failed; leaf1-spine0 failed;\n" + leaf);
  CHECK(losses("nodes_per_leaf: 4, uplinks: 3, rails: true") ==
        "one of 3 spine switches: leaf0.0-spine 66.67 %; leaf0.1-spine 66.67 %; leaf1.0-spine 66.67 %; leaf1.1-spine "
        "66.67 %;\n"
        "one leaf switch with one NIC of 4 nodes: node 0 card 0 failed; node 1 card 0 failed; node 2 card 0 failed; "
        "node 3 card 0 failed;\n");
  CHECK(losses("nodes_per_leaf: 4, uplinks: 1") == leaf);
  CHECK(losses("nodes_per_leaf: 5, uplinks: 2") ==
        "one leaf switch with 5 nodes: the remaining nodes hold no replica of 1 GPU\n");
  CHECK(losses("nodes_per_leaf: 2, nodes_per_pod: 4, uplinks: 2") ==
        restart("one leaf switch with 2 nodes", 3, 24, 576));
}

TEST_CASE("The page of what fails: what goes on, what restarts and after how long, what cannot", "[golden]") {
  const Result whole = test::short_step(0.5);
  std::vector<WhatIf> losses;
  CHECK(to_text(whole, losses) == "");
  const auto lose = [&](const char* part, std::optional<Result> result, int machines = 0) {
    const char* why_not = result ? "" : "no replica is left";
    losses.push_back({.name = part, .lost_machines = machines, .result = std::move(result), .why_not = why_not});
  };
  lose("a card", test::short_step(0.625));
  lose("the last machine", std::nullopt);
  CHECK(to_text(whole, losses) == R"(a step (flows: simulated contention): cost of a failed part until its repair
  failed part  training   step time  samples/s   change
  ─────────────────────────────────────────────────────
  none                       500 ms        128
  a card       continues     625 ms        102  -20.0 %
  Training stops without:
    the last machine: no replica is left
)");
  lose("a machine", test::short_step(0.5, 90.0), 1);
  lose("another card", test::short_step(0.5));
  test::check_whole("fails-goes-on-restarts-after.txt", to_text(whole, losses));
  Result failing = test::short_step(0.5);
  failing.train()->goodput = TrainResult::Goodput{};
  failing.train()->goodput->recovery = Seconds(90.0);
  const auto restart_of = [&] {
    const std::string text = to_text(failing, losses);
    const std::size_t at = text.find("  Training restarts");
    return text.substr(at, text.find("  Training stops") - at);
  };
  CHECK(restart_of() == R"(  Training restarts on the remaining nodes with the same samples per replica
  after 90.0 s of detection and restart; with a spare node, at full speed.
)");
  // On average half of 100 steps of half a second, and what was not safe yet.
  failing.train()->goodput->every = 100;
  failing.train()->goodput->unsafe = Seconds(3.0);
  CHECK(restart_of() == R"(  Training restarts on the remaining nodes with the same samples per replica
  after 90.0 s of detection and restart and, on average, 28.0 s of lost steps;
  with a spare node, at full speed.
)");
}
