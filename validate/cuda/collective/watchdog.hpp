// Limits how long a library may take: NCCL waits for ever when a process, a link or a network interface is missing.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace foretrain::gpu {

/// The decision without thread or clock: what is due at a time.
class Limit {
 public:
  enum class Due {
    nothing,
    give_up,  ///< a caller that polls is to give up
    abort,    ///< the caller did not, it is stuck inside the library: its operations are to be aborted
    exit      ///< even that did not help
  };
  /// Seconds after the beginning. By default below the minute after which the parent ends a process that is silent.
  struct Times {
    double give_up = 45.0, abort = 50.0, exit = 55.0;
  };

  Limit() = default;
  explicit Limit(Times times) : times_(times) {}
  void begin(double now) { begun_ = now; }
  void end() { begun_.reset(); }
  [[nodiscard]] Due due(double now) const;
  [[nodiscard]] double seconds() const { return times_.give_up; }

 private:
  Times times_;
  std::optional<double> begun_;
};

/// Watches in a thread of its own over one guarded piece of work at a time.
class Watchdog {
 public:
  struct Actions {
    /// Called once, in a thread that the watchdog does not wait for: it may block.
    std::function<void()> abort;
    /// Called when aborting did not help; by default prints the message and ends the process with status 1.
    std::function<void(const std::string& message)> exit;
  };
  explicit Watchdog(Actions actions, Limit::Times times = {}, std::function<double()> clock = nullptr);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Guards what happens while it lives. Work that is guarded already stays under the outer guard.
  class Guard {
   public:
    Guard(Watchdog& dog, const std::string& what);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Watchdog* dog_;
  };
  /// Whether the time of the guarded work is up: its caller is to stop waiting for it.
  [[nodiscard]] bool overdue() const;
  [[nodiscard]] std::string message() const;

 private:
  void watch();
  void act();

  Actions actions_;
  std::function<double()> clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Limit limit_;
  std::string what_;
  bool guarding_ = false;
  bool aborted_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace foretrain::gpu
