// Predicted against measured, on logarithmic axes, one panel per quantity.
#pragma once

#include <string>

#include "reports/accuracy.hpp"

namespace foretrain {

/// The report's cases as SVG: the diagonal is a perfect prediction, the band ±10 %. Throws as run_gnuplot does, and
/// std::invalid_argument for a report without cases.
std::string accuracy_svg(const AccuracyReport& report);

}  // namespace foretrain
