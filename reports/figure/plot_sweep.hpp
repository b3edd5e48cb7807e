// Step time, and other quantities, over the values of one key, and where the time is shortest.
#pragma once

#include <string>
#include <vector>

#include "reports/figure/curves.hpp"

namespace foretrain {

struct SweepChart {
  std::string key;                          ///< varied key: "plan.sync.bucket"
  CurveChart times;                         ///< seconds, whole steps first; without places the labels are names
  std::size_t steps = 1;                    ///< number of curves of whole steps; the others are parts of the first
  std::vector<CurveChart> quantities = {};  ///< that are asked for; none: the times
};

/// Values down, curves across; under it, the best value of each step.
std::string to_text(const SweepChart& sweep);

/// The shortest time of each step is marked unless it is at an end. Quantities have a panel each; over names they are
/// bars.
Figure to_figure(const SweepChart& sweep);

}  // namespace foretrain
