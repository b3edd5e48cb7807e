// The collective operations as nccl-tests measures them: what each rank sends and receives.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/collective_operation.hpp"

namespace foretrain::gpu {

/// In the order in which they are measured: the most used first.
const std::vector<CollectiveOperation>& operations();

/// Elements of one rank's buffers. Size is counted as nccl-tests does: all that a rank ends up with for all_gather, all
/// that it begins with for reduce_scatter and all_to_all; send_receive sends it all to the next rank.
/// Source: nccl-tests, src/*.cu, GetCollByteCount.
struct Extent {
  std::uint64_t sent = 0, received = 0;
  std::uint64_t block = 0;  ///< what belongs to one rank, where the buffer is divided among ranks; else the whole
  /// Elements that count as the size; fewer than asked for where they do not divide by the ranks. 0: nothing to do.
  std::uint64_t total = 0;
};
Extent extent_of(CollectiveOperation operation, int ranks, std::uint64_t elements);

}  // namespace foretrain::gpu
