// How points of the suites of launches, memory and copies are named.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "validate/measure/record.hpp"

namespace foretrain::gpu {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// A point that an operator of a scenario states: keys without "workload.operator.", `kind` first. Its name lists them,
/// and the parameters that tell it from others.
Record operator_point(const Fields& operator_keys, const Fields& parameters);
/// A point that no scenario states: what is measured, and how.
Record plain_point(const std::string& what, const Fields& parameters);

/// "1048576 B": exact, as a scenario reads it.
std::string bytes_text(std::size_t bytes);

}  // namespace foretrain::gpu
