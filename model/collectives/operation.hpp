// Variants of collectives: algorithms, placement of servers, dispatch of tokens.
#pragma once

#include "model/base/collective_operation.hpp"
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

/// The way in which `groups` groups share ranks. blocked: consecutive ranks form a group; strided: rank r belongs to
/// group r mod groups (data-parallel groups beside tensor-parallel ones).
enum class RankGrouping { blocked, strided };

enum class ServerPlacement { cpu, gpu, dedicated, colocated };

/// Dispatch of tokens to the ranks of their experts (key plan.expert_dispatch). all_to_all: each copy travels to
/// its expert's rank (NCCL's send and receive). deduplicated: a token crosses the network once to each node that holds
/// some of its experts, to one of their ranks, and is handed on inside; once to each rank of its own node. forwarded:
/// the same over the sender's own rail, to the GPU of its own number (DeepEP, HybridEP).
enum class ExpertDispatch { all_to_all, deduplicated, forwarded };

}  // namespace foretrain
