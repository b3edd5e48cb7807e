// Names of suites' points.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "validate/cuda/math/operator_spec.hpp"
#include "validate/measure/record.hpp"

namespace foretrain::gpu {

using Fields = std::vector<std::pair<std::string, std::string>>;

Record operator_point(const OperatorSpec& spec, const Fields& parameters);
/// A point that no scenario states: what is measured, and how.
Record plain_point(const std::string& what, const Fields& parameters);

/// "1048576 B": exact, as a scenario reads it.
std::string bytes_text(std::size_t bytes);

}  // namespace foretrain::gpu
