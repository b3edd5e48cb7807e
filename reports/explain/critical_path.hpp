// What decides when an execution ends.
#pragma once

#include <string>
#include <vector>

#include "model/graph/timeline.hpp"
#include "model/result.hpp"

namespace foretrain {

/// What is spent on one kind of work, or of waiting.
struct PathPart {
  std::string name;  ///< "compute", "gradient all-reduce", "waiting"
  Seconds time;
};

/// The chain of a step: what its busiest rank does, and where its kernels rest, what it waits for, as the breakdown and
/// the communication table say it. Longest part first; the parts add up to the step.
std::vector<PathPart> chain_of_step(const TrainResult& train);

/// The chain of other graphs, from the last task back: each began when the last of those that it waited for had ended,
/// be it before it on its resource or one that it depends on. The parts add up to the time from the first task's start
/// to the last one's end. Time in which no task of the timeline ran is "waiting".
std::vector<PathPart> critical_path(const std::vector<TimelineEntry>& timeline);

}  // namespace foretrain
