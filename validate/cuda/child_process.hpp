// A child that is this program again, with a pipe on which it says what it does: whatever a GPU does, the parent lives
// on and says what happened.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/base/descriptor.hpp"
#include "model/base/process.hpp"

namespace foretrain::gpu {

class ChildProcess {
 public:
  /// Starts this program with these arguments, in a process group of its own, so that Ctrl-C reaches only the parent.
  /// What the child writes to `descriptor` is read here; its standard output, where it is another, goes to standard
  /// error. Throws std::system_error.
  ChildProcess(const std::vector<std::string>& arguments, int descriptor);
  /// Ends the child if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Hands each line to `hear` until the child closes the pipe, and waits for its end. Returns its exit status; nothing
  /// where a signal ended it, or where nothing was heard for so many seconds, and it was ended here: why() says so.
  /// Throws Interrupted, after it has ended the child, when the user ends the work.
  std::optional<int> listen(const std::function<void(const std::string& line)>& hear, double seconds);
  [[nodiscard]] const std::string& why() const { return why_; }
  /// Whether not even SIGKILL ended it: it hangs in the driver.
  [[nodiscard]] bool hangs() const { return !end_; }

 private:
  enum class Next { line, timeout, end };
  Next next_line(std::string& line, double seconds);
  bool wait(double seconds);
  /// SIGTERM, and SIGKILL after `patience` seconds.
  void end(double patience);

  Process process_;
  Descriptor pipe_;
  std::string buffer_, why_;
  std::optional<ProcessEnd> end_;
};

/// What a child finds that this machine is made of (probe.hpp), as JSON. Throws GpuError with Fault::unavailable.
std::string probe_in_child();

}  // namespace foretrain::gpu
