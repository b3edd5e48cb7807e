// An execution as bars: what ran where, and when.
#pragma once

#include <string>
#include <vector>

#include "model/graph/execution.hpp"

namespace foretrain {

struct TimelineEntry {
  std::string resource, name;
  Seconds start, duration;
  int micro_batch = -1;
  std::string category;                 ///< compute, communication, optimizer, host or data
  int rank_class = 0;                   ///< of the resource: the group of symmetric ranks
  std::string algorithm = {};           ///< algorithm of transfers
  Bytes moved = {};                     ///< all its flows together
  std::vector<std::size_t> after = {};  ///< entries of other resources that it waited for
};

/// One entry for each task that takes time, by resource in the graph's order and then by start. Launches on their way
/// to a device are left out: nothing works on them.
std::vector<TimelineEntry> timeline_of(const TaskGraph& graph, const Execution& execution);

}  // namespace foretrain
