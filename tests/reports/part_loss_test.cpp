// What a part that fails costs until it is repaired.
#include <algorithm>
#include <string>

#include "model/scenario/load/load.hpp"
#include "reports/explain/part_loss.hpp"
#include "sim/simulate.hpp"
#include "tests/reports/sample_results.hpp"
#include "tests/reports/whole.hpp"

using namespace foretrain;

namespace {

std::string training(const std::string& network, const std::string& plan = "") {
  return "cluster: { node: dgx-h100, nodes: 8, network: { " + network +
         " } }\nworkload: { train: { model: llama2-7b, global_batch: 512, micro_batch: 8, precision: bf16 } }\n" + plan;
}

std::vector<WhatIf> losses_of(const std::string& text) {
  return part_losses(load_scenario_text(text, "parts.yaml"), [&](const std::vector<std::string>& overrides) {
    return load_scenario_text(text, "parts.yaml", overrides);
  });
}

const WhatIf& loss_of(const std::vector<WhatIf>& losses, const std::string& part) {
  const auto found = std::ranges::find_if(losses, [&](const WhatIf& loss) { return loss.name.starts_with(part); });
  REQUIRE(found != losses.end());
  return *found;
}

}  // namespace

TEST_CASE("Without a machine, training goes on with the replicas that are left, each with the samples that it had") {
  const std::vector<WhatIf> losses = losses_of(training("nics_per_node: 8"));
  const WhatIf& machine = loss_of(losses, "a machine");
  CHECK(machine.lost_machines == 1);
  REQUIRE(machine.scenario);
  CHECK(machine.scenario->cluster.nodes == 7);
  CHECK(machine.scenario->plan.data == 56);
  // 512 samples of 64 replicas are 8 each.
  CHECK(std::get<TrainWorkload>(machine.scenario->workload).global_batch == 448);
}

TEST_CASE("Replicas that lie on several machines are lost whole") {
  // Four pipelines of two machines: seven machines hold three.
  const std::vector<WhatIf> losses =
      losses_of(training("nics_per_node: 8", "plan: { tensor: 8, pipeline: 2, data: 4 }\n"));
  const WhatIf& machine = loss_of(losses, "a machine");
  REQUIRE(machine.scenario);
  CHECK(machine.scenario->plan.data == 3);
  CHECK(machine.scenario->cluster.nodes == 6);
  // One pipeline over all of them: none is left.
  const std::vector<WhatIf> one = losses_of(training("nics_per_node: 8", "plan: { tensor: 8, pipeline: 8 }\n"));
  CHECK(loss_of(one, "a machine").why_not == "no replica of 64 GPUs is left");
}

TEST_CASE("A leaf switch takes its machines with it, or with rails a card of each") {
  const std::string plain = "nics_per_node: 8, fabric: { kind: fat_tree, nodes_per_leaf: 4, uplinks: 4 }";
  const std::vector<WhatIf> losses = losses_of(training(plain));
  CHECK(loss_of(losses, "a leaf switch").lost_machines == 4);
  const std::vector<WhatIf> railed =
      losses_of(training("nics_per_node: 8, fabric: { kind: fat_tree, nodes_per_leaf: 4, rails: true }"));
  const WhatIf& leaf = loss_of(railed, "a leaf switch");
  CHECK(leaf.lost_machines == 0);
  REQUIRE(leaf.scenario);
  const std::vector<Fault>& faults = leaf.scenario->cluster.faults;
  REQUIRE(faults.size() == 4);
  for (const Fault& fault : faults) CHECK((fault.card == 0 && fault.failed));
}

TEST_CASE("One of four spines carried a quarter") {
  const std::string plain = "nics_per_node: 8, fabric: { kind: fat_tree, nodes_per_leaf: 4, uplinks: 4 }";
  const WhatIf spine = loss_of(losses_of(training(plain)), "a spine switch");
  REQUIRE(spine.scenario);
  const std::vector<Fault>& faults = spine.scenario->cluster.faults;
  REQUIRE(faults.size() == 2);  // one for each leaf
  for (const Fault& fault : faults) CHECK(fault.share == 0.75);
  // Where a hash chooses, its cables are links with names of their own, and the others take what it carried.
  const WhatIf hashed = loss_of(
      losses_of(training("nics_per_node: 8, fabric: { kind: fat_tree, nodes_per_leaf: 4, uplinks: 4, routing: hash }")),
      "a spine switch");
  REQUIRE(hashed.scenario);
  for (const Fault& fault : hashed.scenario->cluster.faults) CHECK(fault.failed);
}

TEST_CASE("No part that fails makes training faster, and what the cluster lacks already stays away") {
  const std::string text = training("nics_per_node: 8, fabric: { kind: fat_tree, nodes_per_leaf: 4, uplinks: 4 }");
  const Scenario scenario = load_scenario_text(text, "parts.yaml");
  const double whole = predict(scenario, Fidelity::estimate, Detail::numbers).train()->samples_per_second;
  for (const WhatIf& loss : losses_of(text)) {
    CAPTURE(loss.name, loss.why_not);
    REQUIRE(loss.scenario);
    const Result without = predict(*loss.scenario, Fidelity::estimate, Detail::numbers);
    CHECK(without.train()->samples_per_second <= whole * (1.0 + 1e-9));
  }
  std::string slow = text;
  slow.replace(slow.find("nodes: 8"), 8, "nodes: 8, faults: [ { node: 3, gpu: 2, speed: 70 % } ]");
  const WhatIf half = loss_of(losses_of(slow), "a GPU");
  REQUIRE(half.scenario);
  CHECK(half.scenario->cluster.faults.size() == 2);
}

TEST_CASE("Losses are told beside what goes on and what restarts") {
  const std::string text = training("nics_per_node: 8", "plan: { tensor: 8, pipeline: 8 }\n");
  const Result whole = predict(load_scenario_text(text, "parts.yaml"), Fidelity::estimate, Detail::numbers);
  std::vector<Answer> losses;
  for (const WhatIf& loss : losses_of(text)) {
    Answer& answer = losses.emplace_back(Answer{loss, std::nullopt});
    if (loss.scenario) answer.result = predict(*loss.scenario, Fidelity::estimate, Detail::numbers);
  }
  const std::string told = to_text(whole, losses);
  CHECK(told.find("a GPU at half its speed") != std::string::npos);
  CHECK(told.find("goes on") != std::string::npos);
  CHECK(told.find("no replica of 64 GPUs is left") != std::string::npos);
  CHECK(told.find("restarts on") == std::string::npos);  // nothing does
}

namespace {

/// What is set for each part, a line each; scenarios are not loaded anew.
std::string set_of(const std::string& text) {
  const Scenario scenario = load_scenario_text(text, "parts.yaml");
  std::string lines = "\n";
  for (const WhatIf& loss : part_losses(scenario, [&](const std::vector<std::string>&) { return scenario; })) {
    lines += loss.name + ":";
    for (const std::string& one : loss.overrides) lines += " " + one;
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

}  // namespace

TEST_CASE("What fails is set beside what the cluster lacks already") {
  CHECK(set_of(cluster_of("node: dgx-a100-80gb, nodes: 2, faults: [ { node: 0, gpu: 0, speed: 50 % }, { node: 1, card: "
                          "0, bandwidth: 25 % }, { node: 1, card: 1, failed: true }, { node: 0, link: gpu2>plx1, "
                          "bandwidth: 10 GB/s } ]",
                          "tensor: 8, data: 2")) == R"(
a GPU at half its speed: cluster.faults=[{ node: 0, gpu: 0, speed: 50 % }, { node: 1, card: 0, bandwidth: 25 % }, { node: 1, card: 1, failed: true }, { node: 0, link: gpu2>plx1, bandwidth: 10 GB/s }, { node: 0, gpu: 0, speed: 50 % }]
a network card: cluster.faults=[{ node: 0, gpu: 0, speed: 50 % }, { node: 1, card: 0, bandwidth: 25 % }, { node: 1, card: 1, failed: true }, { node: 0, link: gpu2>plx1, bandwidth: 10 GB/s }, { node: 0, card: 0, failed: true }]
a machine: cluster.nodes=1 plan.data=1 workload.train.global_batch=480
)");
}

TEST_CASE("What is lost follows what there is: cards, switches above one another, machines") {
  // One machine has nothing but GPUs to lose; two of one card no second one.
  CHECK(set_of(cluster_of("node: dgx-a100-80gb", "data: 8")) == R"(
a GPU at half its speed: cluster.faults=[{ node: 0, gpu: 0, speed: 50 % }]
)");
  CHECK(set_of(cluster_of("node: dgx-a100-80gb, nodes: 2, network: { nics_per_node: 1 }", "tensor: 4, context: 2")) ==
        R"(
a GPU at half its speed: cluster.faults=[{ node: 0, gpu: 0, speed: 50 % }]
a machine: cluster.nodes=1 plan.data=1 workload.train.global_batch=480
)");
  // Pipelines of seven GPUs over machines of four: without one there are 24, three pipelines on six machines.
  CHECK(set_of(cluster_of("node: dgx-a100-80gb, nodes: 7, gpus_per_node: 4, network: { nics_per_node: 1 }",
                          "pipeline: 7, data: 4", "28")) == R"(
a GPU at half its speed: cluster.faults=[{ node: 0, gpu: 0, speed: 50 % }]
a machine: cluster.nodes=6 plan.data=3 workload.train.global_batch=720
)");
  // Five machines below leaves of four: two leaves; below a leaf of eight there is no spine.
  const std::string leaves = "node: dgx-a100-80gb, nodes: 5, network: { nics_per_node: 2, fabric: { kind: fat_tree, ";
  CHECK(set_of(cluster_of(leaves + "nodes_per_leaf: 4, uplinks: 2 } }", "data: 40")) == R"(
a GPU at half its speed: cluster.faults=[{ node: 0, gpu: 0, speed: 50 % }]
a network card: cluster.faults=[{ node: 0, card: 0, failed: true }]
a spine switch, one of 2: cluster.faults=[{ link: leaf0-spine, bandwidth: 50 % }, { link: leaf1-spine, bandwidth: 50 % }]
a leaf switch, with 4 machines: cluster.nodes=1 plan.data=8 workload.train.global_batch=192
a machine: cluster.nodes=4 plan.data=32 workload.train.global_batch=768
)");
  CHECK(set_of(cluster_of(leaves + "nodes_per_leaf: 4, uplinks: 3, rails: true } }", "data: 40")) == R"(
a GPU at half its speed: cluster.faults=[{ node: 0, gpu: 0, speed: 50 % }]
a network card: cluster.faults=[{ node: 0, card: 0, failed: true }]
a spine switch, one of 3: cluster.faults=[{ link: leaf0.0-spine, bandwidth: 66.666666666666671 % }, { link: leaf0.1-spine, bandwidth: 66.666666666666671 % }, { link: leaf1.0-spine, bandwidth: 66.666666666666671 % }, { link: leaf1.1-spine, bandwidth: 66.666666666666671 % }]
a leaf switch, with a card of 4 machines: cluster.faults=[{ node: 0, card: 0, failed: true }, { node: 1, card: 0, failed: true }, { node: 2, card: 0, failed: true }, { node: 3, card: 0, failed: true }]
a machine: cluster.nodes=4 plan.data=32 workload.train.global_batch=768
)");
  CHECK(set_of(cluster_of(leaves + "nodes_per_leaf: 4, uplinks: 1 } }", "data: 40")) == R"(
a GPU at half its speed: cluster.faults=[{ node: 0, gpu: 0, speed: 50 % }]
a network card: cluster.faults=[{ node: 0, card: 0, failed: true }]
a leaf switch, with 4 machines: cluster.nodes=1 plan.data=8 workload.train.global_batch=192
a machine: cluster.nodes=4 plan.data=32 workload.train.global_batch=768
)");
  CHECK(set_of(cluster_of(leaves + "nodes_per_leaf: 5, uplinks: 2 } }", "data: 40")) == R"(
a GPU at half its speed: cluster.faults=[{ node: 0, gpu: 0, speed: 50 % }]
a network card: cluster.faults=[{ node: 0, card: 0, failed: true }]
a leaf switch, with 5 machines: no replica of 1 GPU is left
a machine: cluster.nodes=4 plan.data=32 workload.train.global_batch=768
)");
  CHECK(set_of(cluster_of(leaves + "nodes_per_leaf: 2, nodes_per_pod: 4, uplinks: 2 } }", "data: 40")) == R"(
a GPU at half its speed: cluster.faults=[{ node: 0, gpu: 0, speed: 50 % }]
a network card: cluster.faults=[{ node: 0, card: 0, failed: true }]
a leaf switch, with 2 machines: cluster.nodes=3 plan.data=24 workload.train.global_batch=576
a machine: cluster.nodes=4 plan.data=32 workload.train.global_batch=768
)");
}

TEST_CASE("The page of what fails: what goes on, what restarts and after how long, what cannot", "[golden]") {
  const Result whole = test::short_step(0.5);
  std::vector<Answer> losses;
  CHECK(to_text(whole, losses) == "");
  const auto lose = [&](const char* part, std::optional<Result> result, int machines = 0) {
    WhatIf loss;
    loss.name = part;
    loss.lost_machines = machines;
    if (!result) loss.why_not = "no replica is left";
    losses.push_back({std::move(loss), std::move(result)});
  };
  lose("a card", test::short_step(0.625));
  lose("the last machine", std::nullopt);
  CHECK(to_text(whole, losses) == R"(a step  [flows]: what a part that fails costs until it is repaired
  part    training    step  samples/s
  ───────────────────────────────────
  none              500 ms        128
  a card  goes on   625 ms    -20.0 %
  Training cannot go on without:
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
    const std::size_t at = text.find("  Where machines");
    return text.substr(at, text.find("  Training cannot") - at);
  };
  CHECK(restart_of() == R"(  Where machines are lost, training restarts on those that are left, each
  replica with the samples that it had, after 90.0 s; with a spare machine it
  then goes on as before.
)");
  // On average half of 100 steps of half a second, and what was not safe yet.
  failing.train()->goodput->every = 100;
  failing.train()->goodput->unsafe = Seconds(3.0);
  CHECK(restart_of() == R"(  Where machines are lost, training restarts on those that are left, each
  replica with the samples that it had, after 90.0 s of noticing and restarting,
  and 28.0 s of steps to do again on average; with a spare machine it then goes
  on as before.
)");
}
