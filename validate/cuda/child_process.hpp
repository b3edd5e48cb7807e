// A child that is this program again, with a pipe on which it says what it does.
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

  enum class Ending { ended, silent, lingering };
  /// Hands each line to `hear` until the child closes the pipe, then waits for its end, of which how() tells.
  /// `silent`: it said nothing for so many seconds; `lingering`: it closed the pipe and did not end for as long. Throws
  /// Interrupted, after it has ended the child, when the user ends the work.
  Ending listen(const std::function<void(const std::string& line)>& hear, double seconds);
  /// Of a child that has ended.
  [[nodiscard]] const ProcessEnd& how() const { return end_.value(); }
  /// SIGTERM, and SIGKILL after `patience` seconds. False when not even that ends it: it hangs in the driver.
  bool end(double patience);

 private:
  enum class Next { line, timeout, end };
  Next next_line(std::string& line, double seconds);
  bool wait(double seconds);

  Process process_;
  Descriptor pipe_;
  std::string buffer_;
  std::optional<ProcessEnd> end_;
};

}  // namespace foretrain::gpu
