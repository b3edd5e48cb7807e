// An execution as bars: what ran where, and when.
#pragma once

#include <vector>

#include "model/graph/task_graph.hpp"
#include "model/result.hpp"

namespace foretrain {

/// The category's name in results and exported graphs.
const char* word_of(Category category);

/// One entry for each task that takes time, by resource in the graph's order and then by start. Launches on their way
/// to a device are left out: nothing works on them.
std::vector<TimelineEntry> timeline_of(const TaskGraph& graph, const Execution& execution);

}  // namespace foretrain
