// From a scenario to its result. Flows and steps as an interconnect for the event loop: collectives whose data share
// links with others' at rates that SimGrid gives.
#pragma once

#include <span>

#include "model/job/routing_draws.hpp"

namespace foretrain {

/// Runs the graph with contention for links, also with the background's, which moves from the first task's start to the
/// last one's end. `folding`: equal flows have one representative: faster, with the same result. `fidelity` says how a
/// collective moves its data: see flows_program and steps_program. Fidelity::estimate is not simulated:
/// InternalError.
///
/// SimGrid is asked only if several links bound flows that meet (ask_simgrid: same conditions and errors), and
/// checked before the first such run of a process (check_link_sharing). Throws ImpossiblePlan when a flow crosses a
/// link on which nothing can move, and ScenarioError for background traffic that stays in one memory.
Execution simulate(const TaskGraph& graph, const Topology& topology, Fidelity fidelity,
                   std::span<const BackgroundFlow> background = {}, bool folding = true);

/// run() without contention for an estimate, else simulate() over the job's topology beside its background traffic. The
/// job must outlive the executor.
ExecutorOn executor_on(const Job& job, Fidelity fidelity);
/// The same over the topology that the job's result is of: where routes are drawn, over the middle one of the draws.
Executor executor_of(const Job& job, Fidelity fidelity);

/// One call from a scenario to its finished result. Throws ScenarioError or UsageError when the scenario cannot be
/// predicted.
Result predict(const Scenario& scenario, Fidelity fidelity, Detail detail = Detail::whole);

}  // namespace foretrain
