// Time and bus bandwidth of a collective by message size, one curve per algorithm, measured points beside them.
#pragma once

#include <string>
#include <vector>

#include "reports/figure/curves.hpp"

namespace foretrain {

/// On one machine.
struct BandwidthChart {
  CurveChart times;       ///< seconds; places are sizes in bytes
  CurveChart bandwidths;  ///< bytes a second, by nccl-tests' convention
  std::vector<Point> measured_times = {}, measured_bandwidths = {};
};

/// Without curves, in the units of the axes.
BandwidthChart empty_bandwidths(const std::string& title, const std::string& subtitle,
                                const std::vector<double>& sizes);

/// A table per chart: sizes down; time and bus bandwidth of each algorithm across.
std::string to_text(const std::vector<BandwidthChart>& charts);

/// Bus bandwidth above, time below, one column per chart.
Figure to_figure(const std::vector<BandwidthChart>& charts);

}  // namespace foretrain
