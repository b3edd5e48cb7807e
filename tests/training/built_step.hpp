// A scenario's training step, priced.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/parallelism/layout.hpp"
#include "model/scenario/scenario.hpp"
#include "model/training/graph/step_graph.hpp"
#include "model/training/pricing/build_step.hpp"
#include "model/workload/build.hpp"

namespace foretrain::test {

struct BuiltStep {
  explicit BuiltStep(Scenario from)
      : scenario(std::move(from)),
        topology(scenario.cluster),
        model(build_model(train().model, build_options(train(), scenario.plan))),
        step(build_step(scenario, train(), model, topology)) {}
  [[nodiscard]] const TrainWorkload& train() const { return std::get<TrainWorkload>(scenario.workload); }

  Scenario scenario;
  Topology topology;
  Model model;
  Step step;
};

/// One more change of a scenario.
inline std::vector<std::string> with(std::vector<std::string> changes, const std::string& more) {
  changes.push_back(more);
  return changes;
}

/// The moments of an uncontended run.
inline StepGraph::Times uncontended_times(const Step& step) {
  const StepGraph graph = step_graph(step);
  return times_of(graph, run(graph.graph));
}

}  // namespace foretrain::test
