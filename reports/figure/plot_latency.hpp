// Latency by working set: the prediction as a line, what was measured as points, the caches' sizes as marks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/base/quantity.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

struct LatencyFigure {
  std::string title;
  struct Point {
    Bytes working_set;
    Seconds predicted, measured;
  };
  std::vector<Point> points;  ///< working sets increasing
  std::vector<std::pair<std::string, Bytes>> caches;
};

Figure to_figure(const LatencyFigure& latency);

}  // namespace foretrain
