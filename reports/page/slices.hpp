// A timeline small enough for a page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/graph/timeline.hpp"

namespace foretrain {

/// One bar: a task, or several of one category after each other.
struct Slice {
  std::string resource, name, category;
  int lane = 0, micro_batch = -1;
  Seconds start, duration;
  std::size_t tasks = 1;
};

/// In the order of the entries, which is by resource and then by start. Where there are more than `most`, neighbours of
/// one category on one resource are joined, the shortest first.
std::vector<Slice> slices_of(const std::vector<TimelineEntry>& entries, std::size_t most);

}  // namespace foretrain
