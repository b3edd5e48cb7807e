// The table of measured GEMMs that a calibration holds beside its constants.
#pragma once

#include <vector>

#include "validate/fit/gpu_fit.hpp"

namespace foretrain {

/// The calibration with a table whose log residuals are those of its constants.
Calibration with_table(Calibration calibration, const std::vector<MeasuredMatmul>& rows, const Gpu& gpu);

/// Keeps the table of measured products where points that it does not hold are predicted no worse with it; the result's
/// `matmul_note` says which.
void keep_table_if_it_helps(const std::vector<PredictedPoint>& points, const Gpu& gpu, GpuCalibration& result);

}  // namespace foretrain
