// The subcommands of foretrain-gpu: one file each. Each returns the exit status and throws UsageError, GpuError or
// Interrupted.
#pragma once

#include <string>
#include <vector>

namespace foretrain::gpu {

struct SuiteTask;

/// What the program and its children end with.
namespace exit_status {
constexpr int done = 0;
constexpr int incomplete = 1;     ///< something could not be measured; it was listed
constexpr int unusable = 2;       ///< bad usage, or no usable GPU
constexpr int device_lost = 3;    ///< only of children: the context is gone, a new process may go on
constexpr int interrupted = 130;  ///< what was measured is kept
}  // namespace exit_status

int probe_command(const std::vector<std::string>& words);
int measure_command(const std::vector<std::string>& words);
int replay_command(const std::vector<std::string>& words);

/// A suite in this process, a child of measure_command(): measures what the folder does not hold yet.
int run_suite_process(const SuiteTask& task);

}  // namespace foretrain::gpu
