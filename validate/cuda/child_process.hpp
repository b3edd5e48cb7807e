// A child that is this program again, with a pipe on which it says what it does.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

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

  enum class Next { line, timeout, end, signal };
  /// Waits for the next line. `end`: the child closed the pipe; `signal`: the user ended the work.
  Next next_line(std::string& line, double seconds);
  /// Waits until the child has ended; nothing when it has not after this time. As waitpid() tells it.
  std::optional<int> wait(double seconds);
  /// SIGTERM, and SIGKILL after `patience` seconds. False when not even that ends it: it hangs in the driver.
  bool end(double patience);

 private:
  pid_t process_ = -1;
  int pipe_ = -1;
  std::string buffer_;
  std::optional<int> status_;
};

/// "ended with status 3", "was killed by signal 11 (Segmentation fault)".
std::string ending_of(int wait_status);

}  // namespace foretrain::gpu
