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

Bytes transfer_size(Bytes size, int chunks, const Transfer& transfer) {
  if (transfer.stride == 1) return chunk_range_size(size, chunks, transfer.first_chunk, transfer.chunks);
  const double whole = std::floor(size.value());
  const double share = std::floor(whole / chunks);
  const double remainder = whole - share * chunks;
  // The chunks below `remainder` are one byte larger.
  const double larger = std::clamp(std::ceil((remainder - transfer.first_chunk) / transfer.stride), 0.0,
                                   static_cast<double>(transfer.chunks));
  return Bytes(share * transfer.chunks + larger);
}

Phase without_strides(const Phase& phase) {
  Phase result;
  for (const Transfer& transfer : phase) {
    if (transfer.stride == 1 || transfer.chunks == 1) {
      result.push_back(transfer);
      result.back().stride = 1;
      continue;
    }
    for (int i = 0; i < transfer.chunks; ++i) {
      result.push_back(
          {transfer.source, transfer.destination, transfer.first_chunk + i * transfer.stride, 1, transfer.kind});
    }
  }
  return result;
}

Bytes chunk_size(Bytes size, int chunks, int index) { return chunk_range_size(size, chunks, index, 1); }

}  // namespace foretrain
