// Pictures of a GPU's raw measurements.
#pragma once

#include "reports/figure/figure.hpp"
#include "reports/studies/roofline.hpp"
#include "validate/fit/points.hpp"

namespace foretrain {

/// Matrix products: rate over the work of one product, a panel per precision beneath its peak, points by their shortest
/// side. Throws UsageError where none was measured.
Figure gemm_figure(const std::vector<PredictedPoint>& points);

/// Measured operators beneath the roofs of their GPU: work and least traffic of the model, time as measured.
RooflineFigure measured_roofline(const std::vector<PredictedPoint>& points);

}  // namespace foretrain
