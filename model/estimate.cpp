#include "model/estimate.hpp"

#include "model/collectives/contention.hpp"
#include "model/loading/loader_graph.hpp"
#include "model/training/train_loader.hpp"

namespace foretrain {

StepResult estimate(const PreparedScenario& scenario) {
  if (const PreparedTrain* train = scenario.train()) {
    if (train->store) {
      const StoreBounds bounds = store_bounds(*train->store, scenario.topology());
      return scenario.server_result(estimate_servers(*train->store, scenario.topology(), bounds), Fidelity::estimate);
    }
    const Step& step = train->step;
    StepTimes times = estimate_step(step);
    if (step.loader) times.loader = estimated_interval(*step.loader, consumer_of(step, times)) + step.loader->restart;
    return scenario.train_result(times, Fidelity::estimate);
  }
  if (const PreparedCollective* collective = scenario.collective()) {
    return scenario.collective_result(uncontended_time(collective->lowered, scenario.topology(), scenario.background()),
                                      Fidelity::estimate);
  }
  if (const PreparedLoader* loader = scenario.loader()) {
    return scenario.loader_result(estimated_interval(loader->pipeline, Seconds(0.0)), Fidelity::estimate);
  }
  if (const TaskList* list = scenario.tasks()) {
    return scenario.tasks_result(execute_isolated(list->graph), Fidelity::estimate);
  }
  return scenario.operator_result(Fidelity::estimate);
}

}  // namespace foretrain
