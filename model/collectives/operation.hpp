// What collectives do, and how: operations, algorithms, and where servers stand.
#pragma once

#include "model/base/words.hpp"

namespace foretrain {

/// NCCL's choice, or a row of algorithms.def.
enum class SyncAlgorithm {
  automatic,
#define ALGORITHM(name) name,
#include "model/collectives/algorithms.def"
};
template <>
constexpr std::string_view enumerator_word<SyncAlgorithm::automatic>() {
  return "auto";
}

/// Whether an algorithm has servers: Sync::servers, placement and consistency mean something.
bool has_servers(SyncAlgorithm algorithm);

enum class ServerPlacement { cpu, gpu, dedicated, colocated };
enum class CollectiveOperation { all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_receive };

/// Whether every rank's buffer has messages of its own, so that nothing can be added up or shared on the way.
constexpr bool is_exchange(CollectiveOperation operation) {
  return operation == CollectiveOperation::all_to_all || operation == CollectiveOperation::send_receive;
}

}  // namespace foretrain
