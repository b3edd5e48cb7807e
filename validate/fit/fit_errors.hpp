// How far a calibration's predictions are from the points that were measured.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "validate/fit/gpu_fit.hpp"

namespace foretrain {

/// Points held out, and training steps, beside the whole calibration; those that were fitted beside the model alone,
/// since the table of measured products holds them exactly.
std::vector<PointPair> pairs_of(const std::vector<PredictedPoint>& points, const Calibration& model,
                                const Calibration& with_products);

std::vector<PointErrors> errors_of(const std::vector<PointPair>& pairs);

/// By family; of points held out where there are enough of them, else of all.
std::map<std::string, double> spreads_of(const std::vector<PointPair>& pairs);

std::vector<AccuracyBar> bars_of(const std::vector<PointErrors>& errors);

/// Of a normal distribution, over the quantile of 80 % of its distances from zero.
inline constexpr double four_of_five = 1.2816;

}  // namespace foretrain
