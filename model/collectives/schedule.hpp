// A synchronisation algorithm, written once: phases of transfers between participants. The checker proves it, the
// estimate adds it up, the simulator turns it into flows, a replay runs it.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "model/base/collective_operation.hpp"
#include "model/base/quantity.hpp"
#include "model/collectives/operation.hpp"

namespace foretrain {

/// Chunks first_chunk, first_chunk + stride, … (`chunks` of them) of the message go from one participant to another,
/// which either adds them to its own (reduce) or replaces its own (copy). Participants 0 … ranks-1 are the ranks;
/// further ones are servers.
struct Transfer {
  enum class Kind { copy, reduce };

  int source = 0;
  int destination = 0;
  int first_chunk = 0;
  int chunks = 1;
  Kind kind = Kind::copy;
  int stride = 1;
};

/// Transfers that may run at the same time: they depend on earlier phases only.
using Phase = std::vector<Transfer>;

/// The chunks of `range`, on their way.
inline Transfer sent(Transfer range, int source, int destination, Transfer::Kind kind) {
  return {source, destination, range.first_chunk, range.chunks, kind, range.stride};
}

/// A schedule is a function from phase number to transfers, so that a ring of 16,384 ranks costs nothing until asked.
struct Schedule {
  int ranks = 0;
  int servers = 0;  ///< participants beyond the ranks
  int chunks = 1;   ///< the message is cut into this many nearly equal parts (chunk_range_size)
  int phases = 0;
  std::function<Phase(int phase)> phase;
  /// Number of phases from `phase` on that an estimate counts as equal to `representative`. They move the same amounts
  /// between the same participants, as all phases of a ring do. Where phases are too many to be distinguished, as in
  /// long chains, the representative is the one that moves most.
  struct PhaseRun {
    int length = 1;
    int representative = 0;
  };
  std::function<PhaseRun(int phase)> phase_run = [](int phase) { return PhaseRun{1, phase}; };
};

/// Part of a schedule. Neighbouring parts of one `run` move the same amounts in all their phases.
struct SchedulePart {
  int phases = 0;
  std::function<Phase(int phase)> phase;
  int run = -1;  ///< -1: as `phase_run` says, or every phase by itself
  std::function<Schedule::PhaseRun(int phase)> phase_run = {};
};

Schedule joined(int ranks, int chunks, std::vector<SchedulePart> parts);

/// One or both parts, as the operation needs.
Schedule reduced_then_copied(CollectiveOperation operation, int ranks, int chunks, SchedulePart reducing,
                             SchedulePart copying);

/// `hops` places one after the other work on `pieces` pieces, hop h on piece k in phase h + k. All are busy from phase
/// hops - 1 until the first one has sent its last piece; a ramp of more than 64 phases is taken in 64 steps.
SchedulePart pipeline(int hops, int pieces, std::function<Phase(int phase)> phase);

/// A phase of a chain through which a message passes in pieces: copies away from its first place, or sums towards it.
/// `at` names the participant of a place, `chunks` those of a piece.
template <typename At, typename Chunks>
void append_chain(int hops, int pieces, int phase, bool to_first, const At& at, const Chunks& chunks,
                  Phase& transfers) {
  for (int hop = std::max(0, phase - pieces + 1); hop < std::min(hops, phase + 1); ++hop) {
    const int from = to_first ? hops - hop : hop, to = to_first ? from - 1 : from + 1;
    const auto kind = to_first ? Transfer::Kind::reduce : Transfer::Kind::copy;
    transfers.push_back(sent(chunks(phase - hop), at(from), at(to), kind));
  }
}

/// A hop of a ring: each place passes on the block of the one `lag` before it, which comes to be complete at its own
/// place (reduce) or begins there (copy). `chunks`: those of a place's block.
template <typename At, typename Chunks>
void append_ring_hop(int places, int lag, Transfer::Kind kind, const At& at, const Chunks& chunks, Phase& transfers) {
  for (int place = 0; place < places; ++place) {
    const int owner = (place - lag % places + places) % places;
    transfers.push_back(sent(chunks(owner), at(place), at((place + 1) % places), kind));
  }
}

/// Arguments of builders beside the number of ranks; each takes what concerns it. One number, `parts`, is enough for
/// trying schedules out: servers, or ranks per group.
struct ScheduleShape {
  bool operator==(const ScheduleShape&) const = default;
  ScheduleShape(int all_parts) : parts(all_parts) {}  // NOLINT(google-explicit-constructor): see above
  int parts = 1;
  int ranks_per_node = 1;   ///< hierarchical parameter server; `parts` are its servers
  std::vector<int> levels;  ///< hierarchical: group sizes from the inside out; empty: {parts}
};

/// Size of `count` chunks from `first` on when `size` is cut into `chunks` parts: whole bytes, the first ones one byte
/// larger.
Bytes chunk_range_size(Bytes size, int chunks, int first, int count);
/// Size of what a transfer moves.
Bytes transfer_size(Bytes size, int chunks, const Transfer& transfer);

/// The same moves, one transfer for every piece that lies together.
Phase without_strides(const Phase& phase);

}  // namespace foretrain
