#include "sim/predict.hpp"

#include "model/estimate.hpp"
#include "model/graph/loader_graph.hpp"
#include "model/graph/train_loader.hpp"
#include "sim/executor.hpp"

namespace foretrain {

namespace {

/// Time between batches, or between steps of `consumer` that wait for them.
Seconds simulated_interval(const LoaderPipeline& pipeline, Seconds consumer, const LoweredCollective* copy,
                           const Topology& topology, Fidelity fidelity, const SimulationOptions& options) {
  if (pipeline.workers == 0) return estimated_interval(pipeline, consumer);
  const LoaderGraph graph = build_loader_graph(pipeline, consumer, copy);
  return loader_interval(graph, simulate(graph.graph, topology, fidelity, options));
}

}  // namespace

StepResult predict(const Scenario& scenario, Fidelity fidelity) {
  const PreparedScenario prepared(scenario);
  if (fidelity == Fidelity::estimate) return estimate(prepared);
  const SimulationOptions options{scenario.background};
  if (const PreparedTrain* train = prepared.train()) {
    if (train->store) {
      const ServerGraph graph = build_server_graph(*train->store, prepared.topology());
      const Execution execution = simulate(graph.graph, prepared.topology(), fidelity, options);
      return prepared.server_result(times_of(*train->store, graph, execution), fidelity);
    }
    const UnrolledStep unrolled = unroll(train->step);
    const Step& step = train->step;
    StepTimes times = times_of(unrolled, simulate(unrolled.graph, prepared.topology(), fidelity, options));
    if (step.loader) {
      times.loader = simulated_interval(*step.loader, consumer_of(step, times), copy_of(step), prepared.topology(),
                                        fidelity, options) +
                     step.loader->restart;
    }
    return prepared.train_result(times, fidelity);
  }
  if (prepared.collective() != nullptr) {
    const TaskGraph graph = prepared.collective_graph();
    return prepared.collective_result(simulate(graph, prepared.topology(), fidelity, options).makespan, fidelity);
  }
  if (const PreparedLoader* loader = prepared.loader()) {
    const LoweredCollective* copy = loader->copy.phases.empty() ? nullptr : &loader->copy;
    return prepared.loader_result(
        simulated_interval(loader->pipeline, Seconds(0.0), copy, prepared.topology(), fidelity, options), fidelity);
  }
  if (const TaskList* list = prepared.tasks()) {
    return prepared.tasks_result(simulate(list->graph, prepared.topology(), fidelity, options), fidelity);
  }
  return prepared.operator_result(fidelity);
}

}  // namespace foretrain
