// A bound that no execution of a graph can beat.
#pragma once

#include <algorithm>
#include <vector>

#include "model/graph/task_graph.hpp"

namespace foretrain::test {

/// Length of the longest chain of dependencies alone, resources ignored: no execution can be faster.
inline Seconds critical_path(const TaskGraph& graph) {
  Seconds longest;
  std::vector<Seconds> start(graph.tasks().size());
  for (std::size_t task = 0; task < start.size(); ++task) {
    const auto id = static_cast<TaskId>(task);
    const Seconds finish = start[task] + graph.block_of(id).uncontended;
    longest = std::max(longest, finish);
    for (const TaskId next : graph.successors(id)) {
      Seconds& earliest = start[static_cast<std::size_t>(next)];
      earliest = std::max(earliest, finish);
    }
  }
  return longest;
}

}  // namespace foretrain::test
