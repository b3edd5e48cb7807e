// Something of which every GPU needs its own: handles of libraries, plans made for a device.
#pragma once

#include <map>

#include "validate/cuda/core/error.hpp"

namespace foretrain::gpu {

template <typename T>
class PerDevice {
 public:
  /// That of the current device; a fresh one the first time. Not for several threads at once.
  T& here() {
    int device = 0;
    GPU_CHECK(cudaGetDevice(&device));
    return of_[device];
  }

 private:
  std::map<int, T> of_;
};

}  // namespace foretrain::gpu
