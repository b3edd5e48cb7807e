#include "model/memory/allocator.hpp"

#include <cmath>

namespace foretrain {

namespace {

constexpr double mib = 1048576.0;
constexpr double smallest_block = 512.0;  // kMinBlockSize
constexpr double small_block = mib;       // kSmallSize
constexpr double small_segment = 2.0 * mib;
constexpr double large_block = 10.0 * mib;  // kMinLargeAlloc
constexpr double large_segment = 20.0 * mib;
constexpr double segment_grain = 2.0 * mib;  // kRoundLarge

double round_up(double value, double grain) { return std::ceil(value / grain - 1e-9) * grain; }

}  // namespace

Bytes segments_of(const std::vector<TensorSizes>& tensors) {
  double small = 0.0;  // bytes in segments of 2 MiB
  double segments = 0.0;
  for (const TensorSizes& tensor : tensors) {
    const double block = round_up(tensor.size.value(), smallest_block);
    if (block <= small_block) {
      small += block * tensor.count;
    } else if (block < large_block) {
      segments += std::ceil(tensor.count / std::floor(large_segment / block)) * large_segment;
    } else {
      segments += tensor.count * round_up(block, segment_grain);
    }
  }
  return Bytes(segments + round_up(small, small_segment));
}

}  // namespace foretrain
