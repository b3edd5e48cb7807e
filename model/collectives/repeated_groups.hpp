// Groups that lie alike on nodes that are alike: what one of them does, the others do on their own nodes.
#pragma once

#include <optional>
#include <vector>

#include "model/collectives/collective.hpp"

namespace foretrain {

/// By how many ranks, whole nodes, `to` is `from`; none where it is something else, or the nodes are not alike.
std::optional<int> node_shift(const std::vector<int>& from, const std::vector<int>& to, const Topology& topology);

/// The same of each of several groups, all by the same shift.
std::optional<int> node_shift(const std::vector<std::vector<int>>& from, const std::vector<std::vector<int>>& to,
                              const Topology& topology);

/// The shift of each group but the first, where every group has its nodes for itself; else none.
std::vector<int> shifts_of_first(const std::vector<std::vector<int>>& groups, const Topology& topology);

/// Whether no flow crosses host memory, whose cards depend on the node.
bool is_between_gpus(const LoweredCollective& lowered, const Topology& topology);

/// Shifts every flow.
void shift_flows(LoweredCollective& lowered, int ranks);

/// Adds the flows again for each of `shifts`.
void repeat_flows(LoweredCollective& lowered, const std::vector<int>& shifts);

}  // namespace foretrain
