// Other processes: programs, run as filters or beside this one, and copies of this process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace foretrain {

/// Memory that a forked child shares with its parent. Zero at first.
class SharedMemory {
 public:
  /// Throws std::system_error when the system refuses the memory.
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// The start of the memory as `count` objects of a trivial type.
  template <typename T>
  [[nodiscard]] std::span<T> as(std::size_t count) const {
    return {static_cast<T*>(memory_), count};
  }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The end of a process.
struct ProcessEnd {
  int status = 0;  ///< exit status, where no signal ended it
  int signal = 0;

  [[nodiscard]] bool well() const { return status == 0 && signal == 0; }
  /// As shells have it: 128 + signal when a signal ended it.
  [[nodiscard]] int shell_status() const { return signal != 0 ? 128 + signal : status; }
  /// "ended with status 3", "was ended by signal 9 (Killed)".
  [[nodiscard]] std::string text() const;
};

/// A program to be started.
struct Program {
  std::vector<std::string> command;  ///< the program, found on PATH, and its arguments
  /// Descriptors of this process and their numbers in the program; others are closed if marked O_CLOEXEC.
  std::vector<std::pair<int, int>> descriptors = {};
};

/// A child of this process, which it does not outlive: it is killed when this object goes.
class Process {
 public:
  Process() = default;
  /// Throws std::system_error naming the program when it cannot be started (ENOENT: it is not installed). An
  /// interruption ends it, even where this process has learnt to ignore one.
  explicit Process(const Program& program);
  /// A copy of this process that does `work` and leaves: no destructors, no flushing, as buffers and files belong to
  /// the parent; with status 1 where `work` throws. It dies when this process dies. To be made while this process has a
  /// single thread: only the calling one exists in the copy. Throws std::system_error.
  static Process copy(const std::function<void()>& work);
  ~Process();
  Process(Process&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Process& operator=(Process&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  [[nodiscard]] pid_t number() const { return number_; }
  [[nodiscard]] bool running() const { return number_ > 0; }
  /// Nothing where none runs.
  void send(int signal) const;
  /// Waits for the end of one that runs. Throws std::system_error where the system does not tell.
  ProcessEnd wait();
  /// Nothing while it goes on, or `waits` was disturbed by a signal. Throws as wait() does.
  std::optional<ProcessEnd> ended(bool waits = false);
  /// Leaves a process alone that not even SIGKILL ends.
  void forget() { number_ = -1; }

 private:
  pid_t number_ = -1;
};

struct FilterResult {
  int status = 0;  ///< ProcessEnd::shell_status()
  std::string output;
  std::string errors;
};

/// Runs a program found on PATH, without a shell, feeds it `input` and collects what it writes. Throws
/// std::system_error when it cannot be started (ENOENT: it is not installed).
FilterResult run_filter(const std::vector<std::string>& command, const std::string& input);

}  // namespace foretrain
