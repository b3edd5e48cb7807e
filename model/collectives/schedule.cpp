#include "model/collectives/schedule.hpp"

#include <algorithm>
#include <cmath>

namespace foretrain {

Bytes chunk_range_size(Bytes size, int chunks, int first, int count) {
  // Where chunk i begins: i whole shares plus one byte for each of the earlier chunks that take the remainder.
  const double whole = std::floor(size.value());
  const double share = std::floor(whole / chunks);
  const double remainder = whole - share * chunks;
  const auto begin = [&](int index) { return share * index + std::min<double>(index, remainder); };
  return Bytes(begin(first + count) - begin(first));
}

Bytes chunk_size(Bytes size, int chunks, int index) { return chunk_range_size(size, chunks, index, 1); }

}  // namespace foretrain
