#include "validate/cuda/collective/operations.hpp"

#include <algorithm>
#include <stdexcept>

#include "validate/cuda/collective/pattern.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::uint64_t window_elements = 256;

bool divides(CollectiveOperation operation) {
  return operation == CollectiveOperation::all_gather || operation == CollectiveOperation::reduce_scatter ||
         operation == CollectiveOperation::all_to_all;
}

double sum_at(int ranks, std::uint64_t index) {
  double sum = 0.0;
  for (int rank = 0; rank < ranks; ++rank) sum += static_cast<double>(contribution(rank, index));
  return sum;
}

}  // namespace

const std::vector<CollectiveOperation>& operations() {
  using enum CollectiveOperation;
  static const std::vector<CollectiveOperation> table = {all_reduce, all_gather, reduce_scatter, all_to_all,
                                                         broadcast,  reduce,     send_receive};
  return table;
}

Extent extent_of(CollectiveOperation operation, int ranks, std::uint64_t elements) {
  if (ranks < 2) throw std::invalid_argument("a collective operation needs at least 2 ranks");
  const auto n = static_cast<std::uint64_t>(ranks);
  if (!divides(operation)) return {.sent = elements, .received = elements, .block = elements, .total = elements};
  const std::uint64_t block = elements / n;
  const std::uint64_t whole = block * n;
  return {.sent = operation == CollectiveOperation::all_gather ? block : whole,
          .received = operation == CollectiveOperation::reduce_scatter ? block : whole,
          .block = block,
          .total = whole};
}

bool receives(CollectiveOperation operation, int rank) { return operation != CollectiveOperation::reduce || rank == 0; }

double expected(CollectiveOperation operation, int ranks, int rank, const Extent& extent, std::uint64_t index) {
  const auto own = static_cast<std::uint64_t>(rank);
  switch (operation) {
    case CollectiveOperation::all_reduce:
    case CollectiveOperation::reduce:
      return sum_at(ranks, index);
    case CollectiveOperation::reduce_scatter:
      return sum_at(ranks, own * extent.block + index);
    case CollectiveOperation::broadcast:
      return static_cast<double>(contribution(0, index));
    case CollectiveOperation::all_gather:
      return static_cast<double>(contribution(static_cast<int>(index / extent.block), index % extent.block));
    case CollectiveOperation::all_to_all:
      return static_cast<double>(
          contribution(static_cast<int>(index / extent.block), own * extent.block + index % extent.block));
    case CollectiveOperation::send_receive:
      return static_cast<double>(contribution((rank + ranks - 1) % ranks, index));
  }
  return 0.0;
}

std::vector<Window> windows_of(const Extent& extent, int ranks) {
  const std::uint64_t all = extent.received;
  std::vector<Window> windows;
  const auto add = [&](std::uint64_t first, std::uint64_t count) {
    if (!windows.empty()) first = std::max(first, windows.back().first + windows.back().count);
    const std::uint64_t end = std::min(all, first + count);
    if (first < end) windows.push_back({first, end - first});
  };
  std::vector<std::uint64_t> starts{0};
  for (std::uint64_t i = 1; i <= 6; ++i) starts.push_back(mixed(i) % (all + 1));
  if (extent.received > extent.block) {
    // A few borders tell as much as all of them would.
    const auto step = static_cast<std::uint64_t>(std::max(1, ranks / 16));
    for (std::uint64_t border = extent.block; border < all; border += step * extent.block) {
      starts.push_back(border - std::min(border, window_elements / 2));
    }
  }
  starts.push_back(all - std::min(all, window_elements));
  std::sort(starts.begin(), starts.end());
  for (const std::uint64_t start : starts) add(start, window_elements);
  return windows;
}

}  // namespace foretrain::gpu
