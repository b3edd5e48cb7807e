#include "sim/predict.hpp"

#include "model/estimate.hpp"
#include "sim/executor.hpp"

namespace foretrain {

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
    return prepared.train_result(times_of(unrolled, simulate(unrolled.graph, prepared.topology(), fidelity, options)),
                                 fidelity);
  }
  if (prepared.collective() != nullptr) {
    const TaskGraph graph = prepared.collective_graph();
    return prepared.collective_result(simulate(graph, prepared.topology(), fidelity, options).makespan, fidelity);
  }
  if (const TaskList* list = prepared.tasks()) {
    return prepared.tasks_result(simulate(list->graph, prepared.topology(), fidelity, options), fidelity);
  }
  return prepared.operator_result(fidelity);
}

}  // namespace foretrain
