// Which collective operations are measured, in which order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/collective_operation.hpp"
#include "validate/measure/record.hpp"

namespace foretrain::gpu {

/// An operation as nccl-tests counts it (src/*.cu, GetCollByteCount): all that a rank ends up with for all_gather, all
/// that it begins with for reduce_scatter and all_to_all; send_receive sends it all to the next rank.
struct CollectivePoint {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  int ranks = 2;
  std::uint64_t elements = 0;  ///< fp32: the longer one of a rank's buffers

  [[nodiscard]] std::uint64_t bytes() const { return elements * 4; }
  /// Elements that belong to one rank, where the buffer is divided among ranks.
  [[nodiscard]] std::uint64_t block() const { return elements / static_cast<std::uint64_t>(ranks); }
};

/// Every operation on all GPUs, then on 2, 4, … of them, 8 B to 4 GiB by factors of 4; with quick on all and on two, by
/// factors of 32: as many as the suite's time is enough for, at a quarter and an eighth of a second each. Where a
/// buffer is divided, its size is a multiple of the ranks; sizes that leave a rank without an element are left out.
std::vector<CollectivePoint> collective_points(int all, bool quick);

/// Name and scenario of a point: `workload.collective.*`, by which the model predicts it.
Record record_of(const CollectivePoint& point);

/// Number of machines of the first `ranks` processes, and the most of these ranks on one machine.
struct Spread {
  int nodes = 1, ranks_per_node = 1;
};
Spread spread_of(int ranks, const std::vector<std::string>& machines);

}  // namespace foretrain::gpu
