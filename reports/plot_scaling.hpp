// Step time by number of GPUs, one curve per synchronisation algorithm, one panel per scenario.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

struct ScalingCurve {
  std::string name;                           ///< "ring"
  std::vector<std::optional<Seconds>> times;  ///< one per GPU count of the figure; absent where there is no prediction
};

struct ScalingPanel {
  std::string title;     ///< the scenario's name
  std::string subtitle;  ///< what is kept equal: "128 samples per GPU"
  std::vector<ScalingCurve> curves;
};

struct ScalingFigure {
  std::vector<int> gpus;  ///< increasing
  std::vector<ScalingPanel> panels;
};

/// A table per panel: GPU counts down, algorithms across, and how many times as long the slowest takes as the fastest.
std::string to_text(const ScalingFigure& figure);

/// The figure as SVG. Throws as run_gnuplot does, and std::invalid_argument for a figure without any time.
std::string to_svg(const ScalingFigure& figure);

}  // namespace foretrain
