// A synchronisation algorithm, written once: phases of transfers between participants. The checker proves it, the
// estimate adds it up, the simulator turns it into flows, a replay runs it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

enum class TransferKind { copy, reduce };

/// Chunks [first_chunk, first_chunk + chunks) of the message go from one participant to another, which either adds them
/// to its own (reduce) or replaces its own (copy). Participants 0 … ranks-1 are the ranks; further ones are servers.
struct Transfer {
  int source = 0;
  int destination = 0;
  int first_chunk = 0;
  int chunks = 1;
  TransferKind kind = TransferKind::copy;
};

/// Transfers that may run at the same time: they depend on earlier phases only.
using Phase = std::vector<Transfer>;

/// A schedule is a function from phase number to transfers, so that a ring of 16,384 ranks costs nothing until asked.
struct Schedule {
  int ranks = 0;
  int servers = 0;  ///< participants beyond the ranks
  int chunks = 1;   ///< the message is cut into this many nearly equal parts (chunk_size)
  int phases = 0;
  std::function<Phase(int phase)> phase;
  /// How many phases from `phase` on move the same amounts between the same participants (≥ 1): a ring's 2(n-1) phases
  /// are one run for whoever only adds up bytes.
  std::function<int(int phase)> run_length;
};

/// Size of chunk `index` when `size` is cut into `chunks` parts: whole bytes, the first ones one byte larger.
Bytes chunk_size(Bytes size, int chunks, int index);
/// Size of `count` chunks from `first` on.
Bytes chunk_range_size(Bytes size, int chunks, int first, int count);

/// What the checker found; empty when every rank ends with every contribution exactly once (for the operation).
std::string check_schedule(const Schedule& schedule, CollectiveOperation operation);

/// A row of the table of algorithms.
struct AlgorithmRow {
  SyncAlgorithm algorithm;
  std::string name;  ///< as in scenarios
  CollectiveOperation operation;
  Schedule (*build)(int ranks, int servers);
};
const std::vector<AlgorithmRow>& algorithm_table();
const AlgorithmRow* find_algorithm(SyncAlgorithm algorithm, CollectiveOperation operation);

}  // namespace foretrain
