// Operations of collectives, as nccl-tests names it; one list for models, schedules, scenarios and foretrain-gpu.
#pragma once

namespace foretrain {

enum class CollectiveOperation { all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_receive };

/// Whether every rank's buffer has messages of its own, so that nothing can be added up or shared on the way.
constexpr bool is_exchange(CollectiveOperation operation) {
  return operation == CollectiveOperation::all_to_all || operation == CollectiveOperation::send_receive;
}

/// Whether every rank owns a given part of the message.
constexpr bool has_parts(CollectiveOperation operation) {
  return operation == CollectiveOperation::all_gather || operation == CollectiveOperation::reduce_scatter;
}

/// Whether one rank has the message, at the beginning or at the end.
constexpr bool has_root(CollectiveOperation operation) {
  return operation == CollectiveOperation::broadcast || operation == CollectiveOperation::reduce;
}

/// An all-reduce adds up first and hands out then; other operations do one of the two, exchanges neither.
constexpr bool reduces(CollectiveOperation operation) {
  using enum CollectiveOperation;
  return operation == all_reduce || operation == reduce_scatter || operation == reduce;
}
constexpr bool copies(CollectiveOperation operation) {
  using enum CollectiveOperation;
  return operation == all_reduce || operation == all_gather || operation == broadcast;
}

}  // namespace foretrain
