// Measuring single operators: one record for each point of a design.
#pragma once

#include <vector>

#include "validate/cuda/core/suite.hpp"
#include "validate/cuda/suites/operator_points.hpp"

namespace foretrain::gpu {

/// Makes each point's operator, checks its results, and times it: launched back to back, with operands that rotate so
/// that they come from device memory (`parameters.cache: cold`) or, where all sets that there are still fit into the
/// L2, from there (`warm`). Only quick points with --quick.
void measure_operators(SuiteRun& run, const std::vector<OperatorPoint>& points);

}  // namespace foretrain::gpu
