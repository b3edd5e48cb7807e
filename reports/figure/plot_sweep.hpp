// Step time, and other quantities, over the values of one key, and where the time is shortest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/figure/time_curves.hpp"

namespace foretrain {

/// What a panel of its own shows of every point.
struct SweepQuantity {
  struct Curve {
    std::string name;
    std::vector<std::optional<double>> values;  ///< one per value of the key
    std::vector<Span> ranges = {};              ///< of the predictions; none: not drawn
  };
  std::string axis;  ///< "memory of a GPU (GB)"
  std::vector<Curve> curves;
};

struct SweepFigure {
  std::string title;                ///< the scenario's name
  std::string key;                  ///< what is varied: "plan.sync.bucket"
  std::vector<std::string> labels;  ///< its values as written, increasing: "25 MB"
  std::vector<double> values;       ///< the same as numbers of one unit; none: the labels are names
  std::vector<TimeCurve> curves;    ///< whole steps first
  std::size_t steps = 1;            ///< how many of the curves are whole steps; the others are parts of the first
  std::vector<SweepQuantity> quantities = {};  ///< that are asked for; none: the curves
};

/// Values down, curves across; under it, the best value of each step.
std::string to_text(const SweepFigure& sweep);

/// The shortest time of each step is marked unless it is at an end. Axes are logarithmic where values grow by factors,
/// and where times span decades. Quantities have a panel each; over names they are bars.
Figure to_figure(const SweepFigure& sweep);

}  // namespace foretrain
