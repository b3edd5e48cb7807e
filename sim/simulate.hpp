// Flows and steps as a network for the event loop: collectives whose data share links with others' on SimGrid's clock.
#pragma once

#include <vector>

#include "model/graph/execution.hpp"
#include "model/hardware/topology.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

struct SimulationOptions {
  std::vector<BackgroundFlow> background;  ///< moves from the first task's start to the last one's end
  bool folding = true;                     ///< equal flows have one representative: faster, with the same result
};

/// Runs the graph with contention for links. `fidelity` says how a collective moves its data: see make_flows_program
/// and make_steps_program. Fidelity::estimate is not simulated: std::invalid_argument.
///
/// SimGrid itself runs only if flows meet on a link, in a forked child (run_in_child: same conditions and errors). The
/// first such run of a process also runs check_platform(). Throws std::invalid_argument when a flow crosses a link on
/// which nothing can move, and ScenarioError for background traffic that stays in one memory.
Execution simulate(const TaskGraph& graph, const Topology& topology, Fidelity fidelity,
                   const SimulationOptions& options = {});

}  // namespace foretrain
