// The chain of tasks that decides when an execution ends.
#pragma once

#include <string>
#include <vector>

#include "model/graph/timeline.hpp"

namespace foretrain {

/// What the chain spends on tasks of one kind.
struct PathPart {
  std::string name;  ///< "compute", "gradient all-reduce", "waiting"
  Seconds time;
};

/// From the last task back: each began when the last of those that it waited for had ended, be it before it on its
/// resource or one that it depends on. Longest part first; the parts add up to the time from the first task's start to
/// the last one's end. Time in which no task of the timeline ran is "waiting"; collectives inside layers are part of
/// these, and count as compute.
std::vector<PathPart> critical_path(const std::vector<TimelineEntry>& timeline);

}  // namespace foretrain
