// Work in a process of its own, for what a process can do only once.
#pragma once

#include <functional>
#include <stdexcept>

#include "model/base/process.hpp"

namespace foretrain {

/// A child was ended by a signal: somebody's, or the system's that ran out of memory.
struct ProcessEnded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs `work` in a forked child and waits for it; what it leaves in SharedMemory stays. The child begins as a copy of
/// this process, leaves without running destructors, and dies when this process dies. Throws what `work` throws there,
/// as an ImpossiblePlan, a UsageError, a std::logic_error or else a std::runtime_error with the child's own message;
/// ProcessEnded or another saying how the child ended otherwise;
/// std::system_error when there can be no child. Call it only while this process has a single thread: only the calling
/// thread exists in the child.
void run_in_child(const std::function<void()>& work);

}  // namespace foretrain
