#include "model/graph/shared_device.hpp"

#include <algorithm>

namespace foretrain {

void SharedDevice::start(TaskId task, const DeviceShare& share, Seconds uncontended, Seconds now) {
  kernels_.push_back({task, uncontended, now, now + uncontended, 1.0});
  shares_.push_back(share);
  set_speeds(now);
}

std::vector<TaskId> SharedDevice::take_ended(Seconds now) {
  std::vector<TaskId> ended;
  for (std::size_t i = 0; i < kernels_.size();) {
    if (kernels_[i].end > now) {
      ++i;
      continue;
    }
    ended.push_back(kernels_[i].task);
    kernels_.erase(kernels_.begin() + static_cast<std::ptrdiff_t>(i));
    shares_.erase(shares_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  set_speeds(now);
  return ended;
}

/// A kernel whose speed stays keeps its end: rounding must not move what nothing disturbs.
void SharedDevice::set_speeds(Seconds now) {
  const std::vector<double> speeds = shared_speeds(shares_);
  next_end_ = Seconds::infinity();
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    Kernel& kernel = kernels_[i];
    if (speeds[i] != kernel.speed) {
      kernel.left = std::max(Seconds(0.0), kernel.left - (now - kernel.since) * kernel.speed);
      kernel.since = now;
      kernel.speed = speeds[i];
      kernel.end = now + kernel.left / kernel.speed;
    }
    next_end_ = std::min(next_end_, kernel.end);
  }
}

}  // namespace foretrain
