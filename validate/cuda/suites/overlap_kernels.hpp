// Kernels of the suite overlap.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

/// y[i] = x[i] + y[i] for `count` floats (a multiple of 4) of the current device: bound by the device's memory.
void launch_accumulate(float* y, const float* x, std::size_t count, cudaStream_t stream);

/// How many multiprocessors of the current device take a block at once. Each block needs all shared memory that a block
/// may have, so that it shares a multiprocessor with nothing that needs any, and stays for a millisecond; a block that
/// begins half a millisecond or more after the first has waited for another one's place.
class Census {
 public:
  Census();
  [[nodiscard]] int multiprocessors() const { return multiprocessors_; }
  /// Waits for the stream.
  [[nodiscard]] int free_now(const Stream& stream);

 private:
  int multiprocessors_ = 0;
  int shared_bytes_ = 0;
  DeviceBuffer begun_;
  std::vector<unsigned long long> times_;
};

}  // namespace foretrain::gpu
