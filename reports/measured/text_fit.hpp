// Measurements of machines: what was measured beside what the model says of it, and what the constants became.
#pragma once

#include <string>
#include <vector>

#include "validate/fit/fit.hpp"
#include "validate/fit/gpu_fit.hpp"
#include "validate/host_calibration/calibrate.hpp"

namespace foretrain {

/// A fit on all rows (null: none), and GPUs left out one at a time, each predicted by a fit on the others: `constants`
/// {name: value}, `undetermined` {name: why}, `groups` [{group, gpu, n, mape, bias}], and `left_out` [{gpu, mape,
/// by_rule {name: value}, groups}].
std::string fit_json(const FitResult* result, const std::vector<LeftOut>& left_out);

/// One table per part of this machine's benchmarks, with prediction errors.
std::string to_text(const CalibrationReport& report);

/// Machine and suites; constants with their standard errors; errors by group, fitted and held out; which bars are met.
std::string to_text(const GpuCalibration& fit);

}  // namespace foretrain
