// Lengths of sequences that are packed or padded together: a list or a distribution.
#pragma once

#include <cstdint>
#include <vector>

#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// `[512, 1024, 96]`, or { distribution: uniform | normal | lognormal | exponential, count, mean, spread, shortest (=
/// 1), longest }: the quantiles (i - 1/2) / count, rounded and clamped to shortest and longest, which every reading of
/// the same text gives alike. uniform lies between shortest and longest; exponential has a mean; normal and lognormal
/// have a mean and a spread (the standard deviation as a number of tokens).
std::vector<std::int64_t> read_sequence_lengths(const Field& field);

}  // namespace foretrain
