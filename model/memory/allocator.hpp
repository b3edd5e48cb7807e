// Segments that a framework's caching allocator requests, after PyTorch's (c10/cuda/CUDACachingAllocator.cpp).
#pragma once

#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// `count` tensors of one size.
struct TensorSizes {
  Bytes size;
  double count = 1.0;
};

/// Segments that tensors take which stay for the whole training, allocated size by size. A tensor occupies a multiple
/// of 512 bytes. The driver is asked for 2 MiB for blocks of up to 1 MiB, 20 MiB for blocks below 10 MiB, which share
/// these, and the block rounded up to a multiple of 2 MiB above that.
Bytes segments_of(const std::vector<TensorSizes>& tensors);

}  // namespace foretrain
