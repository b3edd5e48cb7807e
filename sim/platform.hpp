// The one place that knows SimGrid: links and routes become a platform whose flows share links max–min fairly and
// exactly, beside one alarm on SimGrid's clock. SimGrid takes longer to load than most predictions take; it is a
// library of its own (platform_simgrid.cpp, where all stays that changes between SimGrid 3.32 and 4.x), loaded when
// flows meet.
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
  /// A route lists the links that it crosses by number; one listed twice carries every byte twice. On a full link flows
  /// get rates in proportion to the weights of their routes.
  struct Plan {
    std::vector<BytesPerSecond> links;
    std::vector<std::vector<std::int32_t>> routes;
    std::vector<double> weights = {};  ///< of each route; empty: all alike
  };

  /// Identifies a flow from its start until take_finished() has reported it; then the number is used again.
  using FlowId = std::int32_t;

  /// Loads SimGrid into this process, so that its children find it there. Throws std::runtime_error where it cannot be.
  static void load();
  /// Throws std::logic_error when this process has had a Platform before.
  static std::unique_ptr<Platform> make(const Plan& plan);
  virtual ~Platform() = default;

  /// Starts a flow now. SimGrid counts whole bytes: `bytes` is rounded, to one at least. The route must have links.
  virtual FlowId start(RouteIndex route, Bytes bytes) = 0;
  /// Starts a flow that outlasts the simulation (four months at 1 TB/s) and is never reported.
  virtual void start_background(RouteIndex route) = 0;
  /// Without the background.
  [[nodiscard]] virtual int flows_in_progress() const = 0;
  /// The flows that have ended since the last call, in ascending order.
  virtual std::vector<FlowId> take_finished() = 0;

  [[nodiscard]] virtual Seconds now() const = 0;
  /// Sets the alarm, replacing an earlier setting. A date that has passed means now.
  virtual void set_alarm(Seconds date) = 0;
  /// Lets time pass until nothing is left to happen. `wake` is called at the alarm, and when flows have ended.
  virtual void run(const std::function<void()>& wake) = 0;
};

/// Throws std::runtime_error unless SimGrid, as set up here, shares bandwidth exactly: one flow takes bytes over
/// bandwidth, two flows over one link take twice that, a link listed twice counts twice, weights 3 and 1 share 3 to 1.
/// Needs a process of its own.
void check_platform();

}  // namespace foretrain
