// What a machine's benchmarks measured, beside what the model says of them.
#pragma once

#include <string>

#include "validate/host_calibration/calibrate.hpp"

namespace foretrain {

/// One table per part, and how far the predictions are off.
std::string to_text(const CalibrationReport& report);

}  // namespace foretrain
