// Walks over this machine's memory: the same parameters that a scenario's `memory_walk` has, run for real.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "model/hardware/cluster.hpp"
#include "model/workload/host_operators.hpp"
#include "validate/host_calibration/calibrate.hpp"

namespace foretrain {

/// The walk that these parameters ("working_set": "32 KiB", "pattern": "random", …) describe on this processor. Throws
/// ScenarioError as a scenario with them would.
MemoryWalk walk_of(const std::map<std::string, std::string>& parameters, const Cpu& cpu);

/// Repeats the walk; each sample is the time of one access (threads walk at the same time, each over its part). Throws
/// std::invalid_argument for walks that are neither chases nor whole lines in order, or of another socket.
Sampled run_walk(const MemoryWalk& walk, const StoppingRule& rule);

/// The model's answer for a row of walks, in the row's unit: seconds per access or bytes per second. Nothing when the
/// processor's memory hierarchy is not described.
std::optional<double> predict_walk(const BenchmarkRow& row, const Node& node);

}  // namespace foretrain
