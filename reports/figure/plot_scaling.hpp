// How training grows with the number of GPUs, one curve per synchronisation algorithm, one column of panels per
// scenario.
#pragma once

#include <string>
#include <vector>

#include "reports/figure/time_curves.hpp"

namespace foretrain {

struct ScalingPanel {
  std::string title;                 ///< the scenario's name
  std::string subtitle;              ///< what is kept equal: "128 samples per GPU"
  std::vector<TimeCurve> curves;     ///< one time per GPU count of the figure
  std::string samples = {};          ///< what they are called: "images"
  std::vector<double> batches = {};  ///< so many of them make a step on each number of GPUs
};

struct ScalingFigure {
  std::vector<int> gpus;  ///< increasing
  std::vector<ScalingPanel> panels;
};

/// A table per panel: GPU counts down, algorithms across, and how many times as long the slowest takes as the fastest.
std::string to_text(const ScalingFigure& scaling);

/// Throughput above, and below it its share of the ideal: that of the best way on the fewest GPUs, times the others.
Figure to_figure(const ScalingFigure& scaling);

}  // namespace foretrain
