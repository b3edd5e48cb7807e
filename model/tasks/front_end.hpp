// The front end: host threads that launch work and run ahead of the device.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "model/cost/calibration.hpp"
#include "model/graph/recipe.hpp"
#include "model/graph/task_graph.hpp"

namespace foretrain {

/// Adds submissions to a graph. Each is a task of the host thread, then the launch latency, during which other launches
/// may be on their way, then its work in the order of its stream. A stream holds HostConstants::queue_launches
/// submissions; the next one's dispatch waits until the first of them has ended.
class FrontEnd {
 public:
  /// What a host thread hands over at once: one kernel, one copy, or a CUDA graph of many kernels.
  struct Submission {
    BlockId dispatch = 0;                  ///< on the host thread
    std::span<const BlockId> work;         ///< on the stream, one after the other; at least one
    std::span<const TaskId> host_after;    ///< the host thread waits for these before it launches
    std::span<const TaskId> stream_after;  ///< the stream waits for these (events) before the first of the work
    int repetition = -1;
  };

  FrontEnd(TaskGraph::Builder& builder, const HostConstants& constants, Recipes recipes = Recipes::none)
      : builder_(builder), constants_(constants), recipes_(recipes) {}

  /// The tasks of the work, in order.
  std::vector<TaskId> submit(ResourceId thread, ResourceId stream, const Submission& submission);
  /// The last task of each stream that this thread has launched: what it waits for when it synchronises.
  [[nodiscard]] std::vector<TaskId> launched_by(ResourceId thread) const;

 private:
  TaskGraph::Builder& builder_;
  HostConstants constants_;
  Recipes recipes_;
  ResourceId path_ = -1;
  BlockId latency_ = -1;
  std::map<ResourceId, std::vector<TaskId>> ends_;                     ///< by stream: of each submission
  std::map<ResourceId, std::map<ResourceId, TaskId>> last_of_thread_;  ///< by thread and stream
};

}  // namespace foretrain
