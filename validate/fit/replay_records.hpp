// Kernels of replayed steps as measured points: what foretrain-gpu replay wrote (validate/replay/result.hpp), in the
// words of suites.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "validate/fit/raw.hpp"

namespace foretrain {

/// replay-NAME.json.
bool is_replay_file(const std::filesystem::path& file);

/// A point for each kernel of the replay's blocks of several, with the operator as a scenario states it; `traffic` as
/// foretrain-gpu knows it. One point that failed or was skipped where the graph could not be run. Throws ScenarioError
/// for what is no replay.
std::vector<RawPoint> replay_records(std::string_view text, const std::string& file);

}  // namespace foretrain
