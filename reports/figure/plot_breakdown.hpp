// Breakdown of a step's time, one stacked bar per prediction.
#pragma once

#include <string>
#include <vector>

#include "model/result.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

struct BreakdownBar {
  std::string label;
  Breakdown breakdown;
  std::string remark = {};  ///< written behind the step's time, e.g. "10.2 samples/s"
};

/// The bars in the given order from top to bottom: in units of time where they can be compared, in shares of the step
/// where the longest would dwarf the shortest.
Figure to_figure(const std::vector<BreakdownBar>& bars);

}  // namespace foretrain
