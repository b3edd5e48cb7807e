// Measured cases over one of their columns: predictions as lines, measurements as points.
#pragma once

#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

struct CasePoint {
  double x = 0.0;
  std::string label;  ///< of x
  Seconds predicted, measured;
  Span range = {};  ///< of the prediction in seconds, to be drawn as a band; not where it ends at zero
};

struct CaseCurve {
  std::string name;
  std::vector<CasePoint> points;  ///< x increasing
};

struct CasePanel {
  std::string title;
  std::vector<CaseCurve> curves;
};

struct CaseFigure {
  std::string axis;  ///< name of x
  std::string time = "time of one step";
  std::vector<CasePanel> panels = {};
};

/// Adds a point to the panel and the curve of these names, which are made where they are missing.
void add_point(CaseFigure& figure, const std::string& panel, const std::string& curve, CasePoint point);

/// All panels have the same axis of times and the same colour for a name. Curves of one point are left out: there is
/// nothing to follow.
Figure to_figure(const CaseFigure& cases);

}  // namespace foretrain
