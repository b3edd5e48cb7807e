// Uncertainty of a prediction, from the accuracy with which a machine's measurements determine its constants.
#pragma once

#include <string_view>

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// The word of its kind: "matmul", "memory_access".
std::string_view operator_family(const Operator& op);

/// Sets the result's uncertainty where the calibration was fitted with a covariance C; false where it was not, or where
/// nothing of the kind was measured. The variance of ln T is gᵀ C g + s². g holds the slopes of ln T by the constants,
/// by differences of one standard error. s is the spread of measured points around the fit: of an operator that of its
/// family, of a step that of measured steps, of task lists the largest. Where no step was measured, a step has the mean
/// of its families by kernel time, and what step.kernel_stretch adds. The interval holds nine of ten cases (1.64
/// standard deviations of a normal distribution), as the published shares do.
bool set_calibrated_uncertainty(const Scenario& scenario, Result& result);

}  // namespace foretrain
