// One call from a scenario to its result, by the executor that the fidelity names.
#pragma once

#include "model/job/job.hpp"

namespace foretrain {

/// Uncontended for an estimate, else simulated over the job's topology beside its background traffic. The job must
/// outlive the executor.
Executor executor_of(const Job& job, Fidelity fidelity);

/// Throws ScenarioError or UsageError when the scenario cannot be predicted.
Result predict(const Scenario& scenario, Fidelity fidelity, Timeline timeline = Timeline::leave_out);

}  // namespace foretrain
