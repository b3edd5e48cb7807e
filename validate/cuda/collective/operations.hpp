// The collective operations as nccl-tests measures them: what each rank sends and receives, and what it must hold then.
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

/// Whether this rank receives anything that can be checked (only the root does of reduce; the root is rank 0).
bool receives(CollectiveOperation operation, int rank);

/// Element `index` of what `rank` must hold at the end, when each rank's send buffer holds contribution(rank, i).
/// Sums are added up in double precision, which is exact here.
double expected(CollectiveOperation operation, int ranks, int rank, const Extent& extent, std::uint64_t index);

/// Stretches of a receive buffer that are checked: its beginning, its end, six between, and both sides of the borders
/// between ranks' blocks. They do not overlap and are in order.
struct Window {
  std::uint64_t first = 0, count = 0;
};
std::vector<Window> windows_of(const Extent& extent, int ranks);

}  // namespace foretrain::gpu
