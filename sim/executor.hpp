// Runs a task graph on SimGrid's clock: tasks in their resources' order, collectives as flows that share links.
#pragma once

#include <vector>

#include "model/graph/task_graph.hpp"
#include "model/hardware/topology.hpp"
#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

struct SimulationOptions {
  std::vector<BackgroundFlow> background;  ///< moves from the first task's start to the last one's end
  bool folding = true;                     ///< equal flows have one representative: faster, with the same result
};

/// When each task runs, with contention for links. A task starts when it heads its resource's queue and its
/// predecessors are finished. Two runs of the same graph give the same bits.
///
/// `fidelity` says how a collective moves its data: see make_flows_program and make_steps_program. Fidelity::estimate
/// is not simulated: std::invalid_argument.
///
/// SimGrid itself runs only if flows meet on a link, in a forked child (run_in_child: same conditions and errors). The
/// first such run of a process also runs check_platform(). Throws std::invalid_argument when a flow crosses a link on
/// which nothing can move, and ScenarioError for background traffic that stays in one memory.
Execution simulate(const TaskGraph& graph, const Topology& topology, Fidelity fidelity,
                   const SimulationOptions& options = {});

}  // namespace foretrain
