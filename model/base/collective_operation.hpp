// What a collective does, as nccl-tests names it; one list for models, schedules, scenarios and foretrain-gpu.
#pragma once

namespace foretrain {

enum class CollectiveOperation { all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_receive };

/// Whether every rank's buffer has messages of its own, so that nothing can be added up or shared on the way.
constexpr bool is_exchange(CollectiveOperation operation) {
  return operation == CollectiveOperation::all_to_all || operation == CollectiveOperation::send_receive;
}

}  // namespace foretrain
