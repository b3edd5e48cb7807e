// The roofline picture: arithmetic intensity against achieved rate, beneath the roofs of a GPU's precisions.
#pragma once

#include <string>

#include "reports/roofline.hpp"

namespace foretrain {

/// One panel per GPU; points are as large as their share of the panel's time, the longest are named. Throws as
/// run_gnuplot does, and UsageError for a figure without any point to draw.
std::string roofline_svg(const RooflineFigure& figure);

}  // namespace foretrain
