// What a part that fails costs until it is repaired.
#include <algorithm>
#include <string>

#include "model/scenario/load/load.hpp"
#include "reports/explain/part_loss.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

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
