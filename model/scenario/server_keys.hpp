// The keys of plan.sync that only parameter servers have.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "model/base/words.hpp"
#include "model/collectives/operation.hpp"
#include "model/scenario/keys/keys.hpp"

namespace foretrain {

inline bool is_server_key(std::string_view key) {
  const auto row = std::ranges::find(keys::sync.keys, key.substr(0, key.find('.')), &keys::Key::name);
  return row != keys::sync.keys.end() && row->together == keys::with_servers;
}

/// Whether this is the word of an algorithm, and of one without servers.
inline bool has_no_servers(std::string_view word) {
  const std::optional<SyncAlgorithm> algorithm = value_of<SyncAlgorithm>(word);
  return algorithm && !has_servers(*algorithm);
}

}  // namespace foretrain
