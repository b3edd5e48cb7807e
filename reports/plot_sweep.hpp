// Step time over the values of one key, and where it is shortest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// One line of the figure.
struct SweepCurve {
  std::string name;
  std::vector<std::optional<Seconds>> times;  ///< one per value of the figure; absent where there is no prediction
};

struct SweepFigure {
  std::string title;                ///< the scenario's name
  std::string key;                  ///< what is varied: "plan.sync.bucket"
  std::vector<std::string> labels;  ///< its values as written, increasing: "25 MB"
  std::vector<double> values;       ///< the same as numbers of one unit
  std::vector<SweepCurve> curves;   ///< whole steps first
  std::size_t steps = 1;            ///< how many of the curves are whole steps; the others are parts of the first
};

/// Values down, curves across; under it, the best value of each step.
std::string to_text(const SweepFigure& figure);

/// The figure as SVG, the shortest time of each step marked unless it is at an end. Axes are logarithmic where values
/// or times span decades. Throws as run_gnuplot does, and std::invalid_argument for a figure without any time.
std::string to_svg(const SweepFigure& figure);

}  // namespace foretrain
