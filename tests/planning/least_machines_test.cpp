#include "model/planning/least_machines.hpp"

#include "model/memory/memory.hpp"
#include "model/parallelism/layout.hpp"
#include "model/workload/build.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

PlanDimensions some_dimensions() {
  using enum PlanDimension;
  PlanDimensions chosen;
  for (const PlanDimension dimension : {tensor, pipeline, data, micro_batch, recompute, zero}) chosen.set(dimension);
  return chosen;
}

/// A scenario of a batch that few numbers of GPUs divide.
std::string scenario(const std::string& model, const std::string& node, const MachineCount& machines) {
  return "cluster: { node: " + node + ", nodes: " + std::to_string(machines.nodes) +
         (machines.all_gpus ? "" : ", gpus_per_node: " + std::to_string(machines.gpus_per_node)) +
         " }\nworkload: { train: { model: " + model + ", global_batch: 96, precision: bf16 } }\n";
}

/// Reads every plan as any other scenario, and asks for its memory.
bool any_fits(const PlanSpace& space) {
  for (const PlanPoint& layout : space.layouts()) {
    for (const PlanPoint& pass : space.passes(layout)) {
      for (const PlanPoint& pipelined : space.pipelinings(pass)) {
        for (const PlanPoint& sharded : space.shardings(pipelined)) {
          for (const PlanPoint& point : space.synchronisations(sharded)) {
            const Scenario scenario = space.read(point);
            const auto& train = std::get<TrainWorkload>(scenario.workload);
            const Model model = build_model(train.model, build_options(train, scenario.plan));
            if (memory_footprint(scenario, train, model).fits()) return true;
          }
        }
      }
    }
  }
  return false;
}

bool any_fits(const std::string& model, const std::string& node, const MachineCount& machines) {
  try {
    return any_fits(PlanSpace(parse_yaml(scenario(model, node, machines), "test.yaml"), "test", some_dimensions()));
  } catch (const ScenarioError&) {  // no plan divides so many
    return false;
  }
}

std::optional<MachineCount> least(const std::string& model, const std::string& node, int gpus) {
  const auto on = [&](const MachineCount& machines) -> std::optional<YamlNode> {
    return parse_yaml(scenario(model, node, machines), "test.yaml");
  };
  return least_machines(on, some_dimensions(), {1, gpus, true}, true);
}

}  // namespace

TEST_CASE("The least machines are those that looking at every plan finds") {
  struct Row {
    const char* model;
    const char* node;
  };
  // On fewer GPUs none of all plans fits; on the number found one does.
  for (const Row& row : {Row{"{ preset: llama3.2-1b, sequence: 2048 }", "dgx1-v100-16gb"},
                         Row{"{ preset: llama3-8b, sequence: 2048 }", "dgx1-v100-32gb"},
                         Row{"{ preset: gpt2-xl, sequence: 1024 }", "dgx1-p100"}}) {
    INFO(row.model << " on " << row.node);
    const std::optional<MachineCount> found = least(row.model, row.node, 8);
    REQUIRE(found);
    for (int gpus = 1; gpus < 8; ++gpus) {
      const MachineCount some{1, gpus, false};
      if (some.gpus() >= found->gpus()) break;
      INFO(gpus);
      CHECK_FALSE(any_fits(row.model, row.node, some));
    }
    for (int nodes = 1; nodes * 8 < found->gpus(); ++nodes) {
      INFO(nodes);
      CHECK_FALSE(any_fits(row.model, row.node, {nodes, 8, true}));
    }
    CHECK(any_fits(row.model, row.node, *found));
  }
}

TEST_CASE("No number of machines is enough for what one GPU cannot hold of a sample") {
  // A convolution keeps its input whole: 64 channels of 30,000 x 30,000 numbers of 2 bytes are 115 GB, and nothing
  // divides a sample of a network of layers.
  const std::string huge =
      "{ family: cnn, input: [64, 30000, 30000], layers: [ { conv: { out: 64, kernel: 1 } }, global_average_pool, "
      "flatten, { linear: { out: 10 } } ] }";
  CHECK_FALSE(least(huge, "dgx1-v100-16gb", 8));
}

}  // namespace foretrain::test
