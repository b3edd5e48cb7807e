// What schedules, shards and chunked collectives add to a step is folded exactly: the same to the last digits as with
// every rank by itself.
#include <fmt/format.h>

#include "model/scenario/load/load.hpp"
#include "model/training/pricing/build_step.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;

namespace {

const char* const small = R"(
cluster: { node: dgx-a100-80gb, nodes: 4 }
workload:
  train:
    model: { family: gpt, layers: 8, hidden: 8192, heads: 64, vocabulary: 32768, sequence: 2048 }
    global_batch: 128
    micro_batch: 1
    precision: bf16
    optimizer: adamw
plan: { sync: { bucket: 25 MB } }
)";

Seconds simulated_step(const Scenario& scenario, Symmetry symmetry, Fidelity fidelity) {
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  const Topology topology(scenario.cluster);
  const Model model = build_model(train.model, build_options(train, scenario.plan));
  const Step step = build_step(scenario, train, model, topology, Recipes::none, InsideLayers::merged, symmetry);
  const StepGraph graph = step_graph(step);
  return (fidelity == Fidelity::estimate
              ? run(graph.graph)
              : simulate(graph.graph, topology, fidelity, scenario.background, symmetry == Symmetry::used))
      .makespan;
}

}  // namespace

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
      if (fault != "[]") overrides.push_back("cluster.faults=" + fault);
      CAPTURE(overrides);
      const Scenario scenario = load_scenario_text(small, "small.yaml", overrides);
      for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
        const Seconds folded = simulated_step(scenario, Symmetry::used, fidelity);
        const Seconds apart = simulated_step(scenario, Symmetry::ignored, fidelity);
        CHECK(folded.value() == Approx(apart.value()).epsilon(1e-9));
      }
    }
  }
}
