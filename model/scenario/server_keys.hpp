// The keys of plan.sync that only parameter servers have.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "model/base/words.hpp"
#include "model/collectives/operation.hpp"

namespace foretrain {

inline constexpr std::array<std::string_view, 9> server_keys = {"servers",    "placement",    "consistency",
                                                                "assignment", "split",        "priority",
                                                                "barrier",    "local_reduce", "slow_workers"};

inline bool is_server_key(std::string_view key) {
  return std::ranges::find(server_keys, key.substr(0, key.find('.'))) != server_keys.end();
}

/// Whether this is the word of an algorithm, and of one without servers.
inline bool has_no_servers(std::string_view word) {
  const std::optional<SyncAlgorithm> algorithm = value_of<SyncAlgorithm>(word);
  return algorithm && !has_servers(*algorithm);
}

}  // namespace foretrain
