// Which collective operations are measured, in which order.
#pragma once

#include <string>
#include <vector>

#include "validate/cuda/collective/operations.hpp"
#include "validate/measure/record.hpp"

namespace foretrain::gpu {

struct CollectivePoint {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  int ranks = 2;
  Extent extent;  ///< in fp32 elements

  [[nodiscard]] std::uint64_t bytes() const { return extent.total * 4; }
};

/// Every operation on every number of GPUs from 2 to all (rank_counts), 8 B to 4 GiB by factors of 4; with quick on two
/// and on all, by factors of 32: as many as the suite's time is enough for, at a quarter and an eighth of a second
/// each. Sizes that leave a rank without an element are left out.
std::vector<CollectivePoint> collective_points(int all, bool quick);

/// Name and scenario of a point: `workload.collective.*`, by which the model predicts it.
Record record_of(const CollectivePoint& point);

/// How many of the first `ranks` processes' machines there are, and the most of these ranks on one of them.
struct Spread {
  int nodes = 1, ranks_per_node = 1;
};
Spread spread_of(int ranks, const std::vector<std::string>& hosts);

}  // namespace foretrain::gpu
