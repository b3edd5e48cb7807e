// Moments of a replayed step on the device's clock, by pairs of events that are made before.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

/// Events in the order in which they were recorded, kept from step to step.
class EventLine {
 public:
  /// Records the next event on a stream of the current GPU, always the same one; returns its number.
  std::size_t record(cudaStream_t stream) {
    if (used_ == events_.size()) events_.push_back(std::make_unique<Event>());
    events_[used_]->record(stream);
    return used_++;
  }
  void restart() { used_ = 0; }
  /// Seconds from one event to another; both have happened.
  [[nodiscard]] double between(const Event& start, std::size_t number) const {
    return elapsed(start, *events_[number]);
  }
  [[nodiscard]] double between(std::size_t start, std::size_t end) const { return between(*events_[start], end); }

 private:
  std::vector<std::unique_ptr<Event>> events_;
  std::size_t used_ = 0;
};

}  // namespace foretrain::gpu
