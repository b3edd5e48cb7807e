// Curves and points on logarithmic axes, panel beside panel: what pictures of raw measurements are made of.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace foretrain {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< in the panel's units, both positive
  bool line = true;                               ///< false: points alone
};

struct CurvePanel {
  std::string title;
  std::string x, y;           ///< names of the axes, units included
  bool binary_sizes = false;  ///< x is bytes, with tics at powers of two
  bool linear_y = false;      ///< from zero
  double line_at = 0.0;       ///< a horizontal line, such as a peak; 0: none
  std::string line_name;
  std::vector<Curve> curves;
};

struct CurveFigure {
  std::vector<CurvePanel> panels;
};

/// Two panels a row. Panels without any point are left out. Throws as run_gnuplot does, and UsageError where nothing is
/// left.
std::string to_svg(const CurveFigure& figure);

}  // namespace foretrain
