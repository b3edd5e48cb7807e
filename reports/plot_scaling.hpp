// Step time by number of GPUs, one curve per synchronisation algorithm, one panel per scenario.
#pragma once

#include <string>
#include <vector>

#include "reports/time_curves.hpp"

namespace foretrain {

struct ScalingPanel {
  std::string title;              ///< the scenario's name
  std::string subtitle;           ///< what is kept equal: "128 samples per GPU"
  std::vector<TimeCurve> curves;  ///< one time per GPU count of the figure
};

struct ScalingFigure {
  std::vector<int> gpus;  ///< increasing
  std::vector<ScalingPanel> panels;
};

/// A table per panel: GPU counts down, algorithms across, and how many times as long the slowest takes as the fastest.
std::string to_text(const ScalingFigure& scaling);

Figure to_figure(const ScalingFigure& scaling);

}  // namespace foretrain
