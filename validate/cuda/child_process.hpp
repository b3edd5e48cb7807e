// A child that is this program again, with a pipe on which it says what it does.
#pragma once

#include <sys/types.h>

#include <functional>
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

  enum class Ending { ended, silent, lingering };
  /// Hands each line to `hear` until the child closes the pipe, then waits for its end, of which status() tells.
  /// `silent`: it said nothing for so many seconds; `lingering`: it closed the pipe and did not end for as long. Throws
  /// Interrupted, after it has ended the child, when the user ends the work.
  Ending listen(const std::function<void(const std::string& line)>& hear, double seconds);
  /// Of a child that has ended, as waitpid() tells it.
  [[nodiscard]] int status() const { return status_.value(); }
  /// SIGTERM, and SIGKILL after `patience` seconds. False when not even that ends it: it hangs in the driver.
  bool end(double patience);

 private:
  enum class Next { line, timeout, end };
  Next next_line(std::string& line, double seconds);
  bool wait(double seconds);

  pid_t process_ = -1;
  int pipe_ = -1;
  std::string buffer_;
  std::optional<int> status_;
};

/// "ended with status 3", "was killed by signal 11 (Segmentation fault)".
std::string ending_of(int wait_status);

}  // namespace foretrain::gpu
