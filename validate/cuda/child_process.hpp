// Work on GPUs in copies of this process: whatever a GPU does, this one lives on and says what happened. It never asks
// CUDA anything: copies of a process that did could not use their GPU.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "model/base/process.hpp"

namespace foretrain::gpu {

/// Exit statuses of the program and its children.
namespace exit_status {
constexpr int done = 0;
constexpr int incomplete = 1;     ///< something could not be measured; it was listed
constexpr int unusable = 2;       ///< bad usage, or no usable GPU
constexpr int device_lost = 3;    ///< only of children: the context is gone, a new process may go on
constexpr int interrupted = 130;  ///< measurements are kept
}  // namespace exit_status

/// Returns the result of `work`; prints its exceptions on standard error.
int reported(const std::function<int()>& work);

struct ChildEnd {
  std::optional<int> status;  ///< nothing where a signal ended it, or it was ended here: `why` says so
  std::string why = {};
  bool hangs = false;  ///< not even SIGKILL ended it: it hangs in the driver
};

/// Does `work` in a copy of this process, whose exit status is what that returns. A copy whose `signs` of life stay the
/// same for so many seconds is ended. Throws Interrupted, after the copy has ended, when the user ends the work.
ChildEnd run_in_child(
    const std::function<int()>& work, double seconds, const std::function<unsigned()>& signs = [] { return 0U; });

/// SIGTERM, and SIGKILL after `patience` seconds. False where neither ends it; it is left alone then.
bool end_process(Process& process, double patience);

}  // namespace foretrain::gpu
