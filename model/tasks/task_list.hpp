// workload.tasks → TaskGraph: small graphs that a scenario writes out by hand.
#pragma once

#include <map>
#include <string>

#include "model/graph/recipe.hpp"
#include "model/graph/task_graph.hpp"
#include "model/hardware/topology.hpp"
#include "model/scenario/scenario.hpp"
#include "model/tasks/model_call.hpp"

namespace foretrain {

struct TaskList {
  TaskGraph graph;
  std::map<std::string, TaskId> last;            ///< the last repetition of each task, by id
  std::map<std::string, ModelCallResult> calls;  ///< calls of models, by id
};

/// Every place named by `on` becomes a queue that works in order ("gpu0", "gpu0:stream1", "gpu0:d2h", "cpu"). A task
/// with `repeat: n` is n tasks; one that waits for another with the same count waits repetition by repetition, else for
/// the last. In a loop all this holds of each turn. A copy from or to pinned memory is a transfer over the
/// topology; with pageable memory the host stages it at host.pageable_copy_gbps. Kernels on several streams of one GPU
/// share it (SharedDevice).
///
/// Tasks with `enqueued_by` are launched by that host thread (FrontEnd), in the order of the list, as plan.execution
/// says: eager and compiled launch every kernel, a CUDA graph holds all repetitions of an operator, or one call of a
/// model. It waits for tasks of the host on the host, for others on the device (events). The thread that launches a
/// copy with pageable memory waits for it; item and print are such copies. `synchronize` waits for all that its thread
/// has launched; both then resume after host.synchronize_us.
///
/// Throws ScenarioError naming the task for unknown devices and dependencies, and for graphs of more tasks than memory
/// holds.
TaskList build_task_list(const Scenario& scenario, const TasksWorkload& workload, const Topology& topology,
                         Recipes recipes = Recipes::none);

}  // namespace foretrain
