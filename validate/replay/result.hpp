// Measurements of a replay: plain values, and their file, which foretrain reads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/measure/record.hpp"
#include "validate/replay/graph.hpp"

namespace foretrain::replay {

/// Medians, in seconds. Moments are counted from the beginning of the step, on the device's clock.
struct TaskTime {
  std::optional<double> start, end;  ///< nothing where it was launched within a CUDA graph, or takes no time
  std::optional<double> spread;      ///< distance of the quartiles of its duration over the median
  std::optional<double> host;        ///< that the host thread was busy to hand it over, or with its own work
};

/// A piece of a block's work.
struct WorkTime {
  int block = 0;
  std::size_t index = 0;
  double measured = 0.0;  ///< of all its launches in one task
  /// A kernel's operator as run, if it differs from the graph's.
  std::map<std::string, std::string> ran = {};
};

struct Result {
  std::vector<double> steps;         ///< seconds, in the order in which they were run
  std::vector<TaskTime> tasks;       ///< by number
  std::vector<WorkTime> work;        ///< operators of blocks that have several
  double memory = 0.0;               ///< bytes on the first GPU, libraries' included, at most
  double host_launch = 0.0;          ///< median of the host thread's time for a whole step
  std::vector<std::string> notes;    ///< synchronisation of gradients, deviating measurements
  std::optional<DeviceState> state;  ///< of the first GPU while steps were timed
};

/// The hash by which a replay is known to be of this graph. What was predicted, and for which hardware, is left out:
/// that may become better.
std::string identity_of(const Graph& graph);

/// One JSON object: the graph's names and predictions with what was measured beside them. `machine` is JSON.
std::string to_json(const Graph& graph, const Result& result, const std::string& machine);
/// The same for a graph that could not be run: `status` is failed or skipped, and `why` says what happened.
std::string to_json(const Graph& graph, const std::string& status, const std::string& why, const std::string& machine);

}  // namespace foretrain::replay
