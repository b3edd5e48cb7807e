// The one place that knows SimGrid: links and routes become a platform whose flows share links max–min fairly and
// exactly, beside one alarm on SimGrid's clock. Everything that changes between SimGrid 3.32 and 4.x stays in
// platform.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

using RouteIndex = std::int32_t;

/// SimGrid allows one engine per process and the settings are the process's own, so at most one Platform may ever be
/// made in a process (run_in_child gives it one of its own).
class Platform {
 public:
  /// A route lists the links that it crosses by number; one listed twice carries every byte twice.
  struct Plan {
    std::vector<BytesPerSecond> links;
    std::vector<std::vector<std::int32_t>> routes;
  };

  /// Identifies a flow from its start until take_finished() has reported it; then the number is used again.
  using FlowId = std::int32_t;

  /// Throws std::logic_error when this process has had a Platform before.
  explicit Platform(const Plan& plan);
  ~Platform();
  Platform(const Platform&) = delete;
  Platform& operator=(const Platform&) = delete;

  /// Starts a flow now. SimGrid counts whole bytes: `bytes` is rounded, to one at least. The route must have links.
  FlowId start(RouteIndex route, Bytes bytes);
  /// Starts a flow that outlasts the simulation (four months at 1 TB/s) and is never reported.
  void start_background(RouteIndex route);
  /// Without the background.
  [[nodiscard]] int flows_in_progress() const;
  /// The flows that have ended since the last call, in ascending order.
  std::vector<FlowId> take_finished();

  [[nodiscard]] Seconds now() const;
  /// Sets the alarm, replacing an earlier setting. A date that has passed means now.
  void set_alarm(Seconds date);
  /// Lets time pass until nothing is left to happen. `wake` is called at the alarm, and when flows have ended.
  void run(const std::function<void()>& wake);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Throws std::runtime_error unless SimGrid, as set up here, shares bandwidth exactly: one flow takes bytes over
/// bandwidth, two flows over one link take twice that, a link listed twice counts twice. Needs a process of its own.
void check_platform();

}  // namespace foretrain
