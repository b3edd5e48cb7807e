// What everybody who handles flows needs.
#pragma once

#include <vector>

#include "model/collectives/collective.hpp"

namespace foretrain {

/// One flow for each pair of ends, with the bytes of all, ordered by source and destination. Bytes are added in the
/// flows' own order.
std::vector<Flow> merge_by_ends(std::vector<Flow> flows);

/// Whether every rank's buffer has messages of its own, so that nothing can be added up or shared on the way.
constexpr bool is_exchange(CollectiveOperation operation) {
  return operation == CollectiveOperation::all_to_all || operation == CollectiveOperation::send_receive;
}

}  // namespace foretrain
