// Effects between nodes that no schedule knows: headers of small messages, and hops of unequal length.
#pragma once

#include "model/collectives/collective.hpp"

namespace foretrain {

/// Adds to every flow between nodes the headers that its message needs beyond those of a large one
/// (Topology::carried_bytes). Each flow of a phase is one message.
void add_headers(LoweredCollective::Phase& phase, const Topology& topology);

/// The longest way over `hops` consecutive hops of a cycle, wherever it begins.
Seconds longest_way(const std::vector<Seconds>& cycle, int hops);

/// The latency of a repeated phase in which everybody passes on to its one neighbour what has just arrived: a ring. A
/// chunk visits one hop after the other, so that `repeat` repetitions wait for the longest way over so many hops, not
/// for the longest hop as often. The phase gets the mean per repetition. Other phases, and rings whose hops between
/// nodes are equal, stay as they are.
void average_ring_latency(LoweredCollective::Phase& phase, const Topology& topology);

}  // namespace foretrain
