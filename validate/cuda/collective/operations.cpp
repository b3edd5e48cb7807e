#include "validate/cuda/collective/operations.hpp"

#include <stdexcept>

namespace foretrain::gpu {

namespace {

bool divides(CollectiveOperation operation) {
  return operation == CollectiveOperation::all_gather || operation == CollectiveOperation::reduce_scatter ||
         operation == CollectiveOperation::all_to_all;
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

}  // namespace foretrain::gpu
