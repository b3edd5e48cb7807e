#include "sim/predict.hpp"

#include <utility>

#include "model/estimate.hpp"
#include "model/loading/loader_graph.hpp"
#include "model/graph/timeline.hpp"
#include "model/training/train_loader.hpp"
#include "sim/executor.hpp"

namespace foretrain {

namespace {

StepResult with_timeline(StepResult result, const TaskGraph& graph, const Execution& execution, Timeline timeline) {
  if (timeline == Timeline::fill) result.timeline = timeline_of(graph, execution);
  return result;
}

StepResult estimate_with_timeline(const PreparedScenario& prepared) {
  StepResult result = estimate(prepared);
  const auto fill = [&](const TaskGraph& graph) { result.timeline = timeline_of(graph, execute_isolated(graph)); };
  if (const PreparedTrain* train = prepared.train()) {
    if (train->store) {
      fill(build_server_graph(*train->store, prepared.topology()).graph);
    } else {
      fill(unroll(train->step).graph);
    }
  } else if (prepared.collective() != nullptr) {
    fill(prepared.collective_graph());
  } else if (const TaskList* list = prepared.tasks()) {
    fill(list->graph);
  }
  return result;
}

/// Time between batches, or between steps of `consumer` that wait for them.
Seconds simulated_interval(const LoaderPipeline& pipeline, Seconds consumer, const LoweredCollective* copy,
                           const Topology& topology, Fidelity fidelity, const SimulationOptions& options) {
  if (pipeline.workers == 0) return estimated_interval(pipeline, consumer);
  const LoaderGraph graph = build_loader_graph(pipeline, consumer, copy);
  return loader_interval(graph, simulate(graph.graph, topology, fidelity, options));
}

}  // namespace

StepResult predict(const Scenario& scenario, Fidelity fidelity, Timeline timeline) {
  const PreparedScenario prepared(scenario);
  if (fidelity == Fidelity::estimate) {
    return timeline == Timeline::fill ? estimate_with_timeline(prepared) : estimate(prepared);
  }
  const SimulationOptions options{scenario.background};
  if (const PreparedTrain* train = prepared.train()) {
    if (train->store) {
      const ServerGraph graph = build_server_graph(*train->store, prepared.topology());
      const Execution execution = simulate(graph.graph, prepared.topology(), fidelity, options);
      return with_timeline(prepared.server_result(times_of(*train->store, graph, execution), fidelity), graph.graph,
                           execution, timeline);
    }
    const UnrolledStep unrolled = unroll(train->step);
    const Step& step = train->step;
    const Execution execution = simulate(unrolled.graph, prepared.topology(), fidelity, options);
    StepTimes times = times_of(unrolled, execution);
    if (step.loader) {
      times.loader = simulated_interval(*step.loader, consumer_of(step, times), copy_of(step), prepared.topology(),
                                        fidelity, options) +
                     step.loader->restart;
    }
    return with_timeline(prepared.train_result(times, fidelity), unrolled.graph, execution, timeline);
  }
  if (prepared.collective() != nullptr) {
    const TaskGraph graph = prepared.collective_graph();
    const Execution execution = simulate(graph, prepared.topology(), fidelity, options);
    return with_timeline(prepared.collective_result(execution.makespan, fidelity), graph, execution, timeline);
  }
  if (const PreparedLoader* loader = prepared.loader()) {
    const LoweredCollective* copy = loader->copy.phases.empty() ? nullptr : &loader->copy;
    return prepared.loader_result(
        simulated_interval(loader->pipeline, Seconds(0.0), copy, prepared.topology(), fidelity, options), fidelity);
  }
  if (const TaskList* list = prepared.tasks()) {
    const Execution execution = simulate(list->graph, prepared.topology(), fidelity, options);
    return with_timeline(prepared.tasks_result(execution, fidelity), list->graph, execution, timeline);
  }
  return prepared.operator_result(fidelity);
}

}  // namespace foretrain
