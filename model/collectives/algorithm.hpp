// A synchronisation algorithm as one value: the schedules that it has, and what it must know of the hardware. Each is
// written in a file of its own, NAME_algorithm.cpp, and named in algorithms.def.
#pragma once

#include <string>
#include <vector>

#include "model/collectives/collective.hpp"
#include "model/collectives/placement.hpp"
#include "model/collectives/schedule.hpp"

namespace foretrain {

struct Algorithm {
  std::vector<CollectiveOperation> operations = {};  ///< of which there is a textbook form
  /// Null: the library alone carries it out, and its kernels say how.
  Schedule (*build)(CollectiveOperation operation, int ranks, const ScheduleShape& shape) = nullptr;
  /// The schedule's shape on the hardware for one group, whose ranks are in schedule order; null: none. Throws
  /// ImpossiblePlan where the hardware cannot carry the algorithm out, or the group's shape does not suit it.
  ScheduleShape (*shape)(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) = nullptr;
  /// A group's ranks in the order in which the schedule numbers them; null: as the caller names them.
  std::vector<int> (*order)(const CollectiveCall& call, const std::vector<int>& group, RingOrders& orders) = nullptr;
  /// The all-to-all among many ranks, with as many flows as ranks instead of pairs of ranks (exchange.hpp); null: as
  /// its schedule says.
  std::vector<LoweredCollective::Phase> (*all_to_all_of_many)(const CollectiveCall& call,
                                                              const Topology& topology) = nullptr;
  bool has_servers = false;

  [[nodiscard]] bool has(CollectiveOperation operation) const;
  /// Schedule of one of its operations; empty for a single rank without servers.
  [[nodiscard]] Schedule schedule(CollectiveOperation operation, int ranks, const ScheduleShape& shape) const;
};

#define ALGORITHM(name) extern const Algorithm name##_algorithm;
#include "model/collectives/algorithms.def"

/// SyncAlgorithm::automatic has no operations of its own.
const Algorithm& algorithm_of(SyncAlgorithm algorithm);
/// Words of the algorithms that carry out an operation, in the order of algorithms.def.
std::vector<std::string> algorithms_for(CollectiveOperation operation);

/// Algorithm::order of rings: neighbours next to each other. Who sends to whom is part of an exchange's meaning.
std::vector<int> ring_order(const CollectiveCall& call, const std::vector<int>& group, RingOrders& orders);
/// Number of ranks that a group has on each of its nodes. Throws ImpossiblePlan where these are different numbers.
int equal_ranks_per_node(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology);

}  // namespace foretrain
