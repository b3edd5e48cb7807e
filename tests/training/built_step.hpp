// A scenario's training step, priced.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/parallelism/layout.hpp"
#include "model/scenario/scenario.hpp"
#include "model/training/graph/step_graph.hpp"
#include "model/training/outcome/breakdown.hpp"
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

/// Moments of an uncontended run.
struct StepMoments {
  Seconds backward_done;  ///< the last stage to finish its last backward pass
  Seconds synchronised;   ///< all gradients synchronised
  Seconds end;            ///< optimizer done, weights gathered
};
inline StepMoments uncontended_times(const Step& step) {
  const StepGraph graph = step_graph(step);
  const Execution execution = run(graph.graph);
  StepMoments moments{{}, execution.start[at_index(graph.synchronised)], execution.makespan};
  for (const TaskId task : graph.last_backward) {
    moments.backward_done = std::max(moments.backward_done, execution.finish[at_index(task)]);
  }
  return moments;
}

/// Breakdown of such a run.
inline TimeUse uncontended_use(const Step& step, std::optional<Seconds> loader = std::nullopt) {
  const StepGraph graph = step_graph(step);
  const Execution execution = run(graph.graph);
  return time_use(step, graph, execution, execution.makespan, loader);
}

}  // namespace foretrain::test
