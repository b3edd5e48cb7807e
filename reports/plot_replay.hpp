// Replayed all-reduces over the number of workers: what was predicted as lines, what was measured as points.
#pragma once

#include <string>
#include <vector>

#include "reports/figure.hpp"
#include "validate/host_replay/measurements.hpp"

namespace foretrain {

struct ReplayPoint {
  int workers = 0;
  Seconds predicted, measured;
};

struct ReplayCurve {
  std::string name;                 ///< "ring", "1 server"
  std::vector<ReplayPoint> points;  ///< workers increasing
};

struct ReplayPanel {
  std::string title;  ///< "4 MB, cards of 500 Mbit/s"
  std::vector<ReplayCurve> curves;
};

/// One panel for each group whose name begins with `prefix`, in order of appearance.
std::vector<ReplayPanel> replay_panels(const std::vector<HostMeasurement>& runs, const std::string& prefix);

Figure to_figure(const std::vector<ReplayPanel>& panels);

}  // namespace foretrain
