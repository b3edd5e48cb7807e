#include "model/estimate.hpp"

#include "model/collectives/contention.hpp"

namespace foretrain {

StepResult estimate(const PreparedScenario& scenario) {
  if (const PreparedTrain* train = scenario.train()) {
    if (train->store) {
      const StoreBounds bounds = store_bounds(*train->store, scenario.topology());
      return scenario.server_result(estimate_servers(*train->store, scenario.topology(), bounds), Fidelity::estimate);
    }
    return scenario.train_result(estimate_step(train->step), Fidelity::estimate);
  }
  if (const PreparedCollective* collective = scenario.collective()) {
    return scenario.collective_result(isolated_time(collective->lowered, scenario.topology(), scenario.background()),
                                      Fidelity::estimate);
  }
  if (const TaskList* list = scenario.tasks()) {
    return scenario.tasks_result(execute_isolated(list->graph), Fidelity::estimate);
  }
  return scenario.operator_result(Fidelity::estimate);
}

}  // namespace foretrain
