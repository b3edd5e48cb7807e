// Goodput over the interval between checkpoints: simulated, and by Daly's formula.
#pragma once

#include <string>
#include <vector>

#include "model/result.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

/// Trainings with failures and checkpoints; a panel for each.
struct GoodputFigure {
  std::vector<Result> trainings;
};

/// Intervals down; what is simulated, and what the formula says.
std::string to_text(const GoodputFigure& figure);

/// Young's, Daly's and the best interval are marked, and the scenario's own.
Figure to_figure(const GoodputFigure& figure);

}  // namespace foretrain
