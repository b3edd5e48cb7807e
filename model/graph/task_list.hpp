// workload.tasks → TaskGraph: small graphs that a scenario writes out by hand.
#pragma once

#include <map>
#include <string>

#include "model/graph/task_graph.hpp"
#include "model/hardware/topology.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

struct TaskList {
  TaskGraph graph;
  std::map<std::string, TaskId> last;  ///< the last repetition of each task, by id
};

/// Every place named by `on` becomes a queue that works in order ("gpu0", "gpu0:stream1", "gpu0:d2h", "cpu"). A task
/// with `repeat: n` is n tasks; one that waits for another with the same count waits repetition by repetition, else for
/// the last. A copy from or to page-locked memory is a transfer over the topology; with pageable memory the host stages
/// it at host.pageable_copy_gbps. Throws ScenarioError naming the task for unknown devices and dependencies.
TaskList build_task_list(const Scenario& scenario, const TasksWorkload& workload, const Topology& topology);

}  // namespace foretrain
