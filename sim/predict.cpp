#include "sim/predict.hpp"

#include "sim/simulate.hpp"

namespace foretrain {

Executor executor_of(const Job& job, Fidelity fidelity) {
  if (fidelity == Fidelity::estimate) return [](const TaskGraph& graph) { return run(graph); };
  return [&job, fidelity](const TaskGraph& graph) {
    return simulate(graph, job.topology(), fidelity, job.scenario().background);
  };
}

Result predict(const Scenario& scenario, Fidelity fidelity, Timeline timeline) {
  const std::unique_ptr<Job> job = make_job(scenario, fidelity);
  return result_of(*job, executor_of(*job, fidelity), timeline);
}

}  // namespace foretrain
