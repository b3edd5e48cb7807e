// A table of cases with what a replay measured of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/host_replay/measurements.hpp"

namespace foretrain {

/// The table `text` with the columns measured.time, replay.spread, replay.cores_busy and source filled in for the cases
/// that `runs` name (added where they are missing); other cases keep what they say. Throws ScenarioError as parse_csv.
std::string measured_table(std::string_view text, const std::string& file, const std::vector<HostMeasurement>& runs,
                           const HostMachine& machine);

}  // namespace foretrain
