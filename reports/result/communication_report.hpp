// Collectives and parameter servers of a step, as text.
#pragma once

#include <string>

#include "model/result.hpp"

namespace foretrain {

/// First screens leave out what takes less of a step.
inline constexpr double least_share = 0.0005;

/// Collectives by their time; `verbose` adds hidden times and the collectives inside layers one by one. Empty where
/// nothing is sent.
std::string communication_section(const Result& result, bool verbose);

/// Empty without parameter servers.
std::string server_section(const TrainResult& train, bool verbose);

}  // namespace foretrain
