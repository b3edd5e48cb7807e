// Step time over the values of one key, and where it is shortest.
#pragma once

#include <string>
#include <vector>

#include "reports/figure/time_curves.hpp"

namespace foretrain {

struct SweepFigure {
  std::string title;                ///< the scenario's name
  std::string key;                  ///< what is varied: "plan.sync.bucket"
  std::vector<std::string> labels;  ///< its values as written, increasing: "25 MB"
  std::vector<double> values;       ///< the same as numbers of one unit
  std::vector<TimeCurve> curves;    ///< whole steps first
  std::size_t steps = 1;            ///< how many of the curves are whole steps; the others are parts of the first
};

/// Values down, curves across; under it, the best value of each step.
std::string to_text(const SweepFigure& sweep);

/// The shortest time of each step is marked unless it is at an end. Axes are logarithmic where values grow by factors,
/// and where times span decades.
Figure to_figure(const SweepFigure& sweep);

}  // namespace foretrain
