// How far a prediction may be off, from how well a machine's own measurements determine the constants it depends on.
#pragma once

#include <string_view>

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// The word of its kind: "matmul", "memory_access".
std::string_view operator_family(const Operator& op);

/// Sets the result's uncertainty where the calibration was fitted with a covariance C; false where it was not, or where
/// nothing of the kind was measured. The variance of ln T is gᵀ C g + s², where g holds the slopes of ln T by the
/// constants, from one standard error of each (closed form, one more estimate for each) and s is the spread of the
/// measured points of the operator's family around the fit; of steps that of measured steps, or, where none was, the
/// mean of the families' by their kernels' time, together with what step.kernel_stretch adds to kernels; of task lists
/// the largest of all families. The interval holds nine of ten cases (1.64 standard deviations of a normal
/// distribution), as the published shares do.
bool set_calibrated_uncertainty(const Scenario& scenario, Result& result);

}  // namespace foretrain
