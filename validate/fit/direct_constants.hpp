// Constants measured without a fit: properties of the hardware, and constants of the host that one record measures
// alone. The only place that knows the parameters of records which no scenario can state.
#pragma once

#include <vector>

#include "validate/fit/describe.hpp"
#include "validate/fit/gpu_fit.hpp"
#include "validate/fit/points.hpp"
#include "validate/fit/raw.hpp"

namespace foretrain {

/// Latency and L2 from walks (`points`, predicted on a node without measured figures), links from copies and rings.
MeasuredFigures measured_figures(const RawMeasurements& raw, const std::vector<PredictedPoint>& points);

/// Constants of the host, each from the records that measure it; nothing for those that were not measured, or to
/// figures beyond what is sensible. `published` divides a round trip between its ends.
std::vector<RobustConstant> direct_constants(const RawMeasurements& raw, const HostConstants& published);

}  // namespace foretrain
