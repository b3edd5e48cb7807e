// A whole way of synchronising as one value of --vary: "ring", "servers(8)", "servers(8,dedicated,added)".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/load/cases.hpp"

namespace foretrain {

/// Settings of a value of `plan.sync`.
struct SyncChoice {
  std::vector<std::pair<std::string, std::string>> settings;  ///< dotted keys and their values
  int added_machines = 0;  ///< so many more than the scenario has: dedicated servers that take none of its machines
};

/// Reads a value of `plan.sync`, `plan.sync.algorithm` or `workload.collective.algorithm`: an algorithm's name, or
/// servers(N), servers(N,PLACEMENT), servers(N,dedicated,added). Nothing for other keys, and for a mapping. Throws
/// UsageError.
std::optional<SyncChoice> sync_choice(std::string_view key, std::string_view value);

/// In words: "ring", "8 servers", "8 dedicated servers, added".
std::string sync_words(std::string_view value);

/// Raises cluster.nodes of the row by so many. Throws UsageError where the scenario has machines of several kinds.
void add_machines(Case& row, int machines);

/// Takes out what the row's own algorithm has no use for: keys of parameter servers beside an algorithm without them.
void leave_out_unused(std::vector<Override>& overrides);

}  // namespace foretrain
