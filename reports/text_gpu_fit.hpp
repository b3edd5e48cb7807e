// What a fit of a GPU's measurements found, as text.
#pragma once

#include <string>

#include "validate/fit/gpu_fit.hpp"

namespace foretrain {

/// Machine and suites; constants with their standard errors; errors by group, fitted and held out; which bars are met.
std::string to_text(const GpuCalibration& fit);

}  // namespace foretrain
