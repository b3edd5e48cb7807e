// Curves of one quantity over one axis: a chart's description, from which its panel and its table are made.
#pragma once

#include <string>
#include <vector>

#include "reports/figure/figure.hpp"

namespace foretrain {

/// In base units; NaN where there is no value.
struct Curve {
  std::string name;               ///< "ring"
  std::vector<double> values;     ///< one per place of the axis
  std::vector<Span> ranges = {};  ///< of the values, drawn as a band; none: no band
};

/// Name, unit and text format of values.
struct Scale {
  std::string name;  ///< "memory (GB)"
  double unit = 1.0;
  std::string (*text)(double) = nullptr;  ///< of a value in base units: "42.5 GB"
};

/// "time (ms)": in the unit that suits the longest.
Scale time_scale(double longest, const std::string& name = "time");

struct CurveChart {
  std::string title = {}, subtitle = {};
  std::string axis = {};                 ///< name of x: "GPUs"
  std::vector<double> places = {};       ///< along x, increasing
  std::vector<std::string> labels = {};  ///< of the places
  Scale scale = {};
  std::vector<Curve> curves = {};
};

/// Whether every place has a value on every curve.
bool is_complete(const std::vector<Curve>& curves);

/// From the least value of the first `count` curves to the greatest; from infinity to zero where there is none.
Span span_of(const std::vector<Curve>& curves, std::size_t count);

/// A line with dots for each curve; at its end its name and, where the scale has a text, its last value. Axes are
/// logarithmic where places grow by factors, and where values span decades.
Panel to_panel(const CurveChart& chart, int width, int height);

/// A bar for each label and curve, the first on top, its value behind it and its range as a line over it.
Panel to_bars(const CurveChart& chart, int width);

/// A number with three digits at least.
std::string value_text(double value);

/// Places down, curves across, under `corner`. `absent` stands where there is no value.
std::vector<std::vector<std::string>> cells_of(const CurveChart& chart, const std::string& corner,
                                               const std::string& absent = "-");

/// Rows of cells aligned at the right, the first of them the header.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

}  // namespace foretrain
