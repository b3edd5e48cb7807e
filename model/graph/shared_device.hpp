// Kernels of several streams that run on one device at the same time.
#pragma once

#include <vector>

#include "model/cost/device_share.hpp"
#include "model/graph/task_graph.hpp"

namespace foretrain {

/// Each kernel has its uncontended time as work and is worked off at the speed that shared_speeds gives; speeds are
/// worked out anew whenever a kernel starts or ends. A kernel that never meets others takes exactly that time.
class SharedDevice {
 public:
  /// `now` must not lie before the last call's.
  void start(TaskId task, const DeviceShare& share, Seconds uncontended, Seconds now);
  /// When the next kernel ends if nothing else starts; infinity for an idle device.
  [[nodiscard]] Seconds next_end() const { return next_end_; }
  /// Takes away the kernels that have ended by `now` (next_end() at most), in the order in which they started.
  std::vector<TaskId> take_ended(Seconds now);

 private:
  struct Kernel {
    TaskId task;
    Seconds left;   ///< at `since`, at full speed
    Seconds since;  ///< when `speed` was set
    Seconds end;
    double speed;
  };
  void set_speeds(Seconds now);

  std::vector<Kernel> kernels_;
  std::vector<DeviceShare> shares_;  ///< of the kernels
  Seconds next_end_ = Seconds::infinity();
};

}  // namespace foretrain
