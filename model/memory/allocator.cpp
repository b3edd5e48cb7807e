#include "model/memory/allocator.hpp"

#include <algorithm>
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

Bytes block_bytes(Bytes tensor) {
  if (!(tensor > Bytes(0.0))) return Bytes(0.0);
  return Bytes(round_up(tensor.value(), smallest_block));
}

Bytes segment_bytes(Bytes block) {
  if (!(block > Bytes(0.0))) return Bytes(0.0);
  if (block.value() <= small_block) return Bytes(small_segment);
  if (block.value() < large_block) return Bytes(large_segment);
  return Bytes(round_up(block.value(), segment_grain));
}

Bytes segments_of(const std::vector<TensorSizes>& tensors) {
  double small = 0.0;  // bytes in segments of 2 MiB
  double segments = 0.0;
  for (const TensorSizes& tensor : tensors) {
    const double block = block_bytes(tensor.size).value();
    if (block <= small_block) {
      small += block * tensor.count;
    } else if (block < large_block) {
      segments += std::ceil(tensor.count / std::floor(large_segment / block)) * large_segment;
    } else {
      segments += tensor.count * segment_bytes(Bytes(block)).value();
    }
  }
  return Bytes(segments + round_up(small, small_segment));
}

}  // namespace foretrain
