// Scaling of training with the number of GPUs, one curve per synchronisation algorithm, one column of panels per
// scenario.
#pragma once

#include <string>
#include <vector>

#include "reports/figure/curves.hpp"

namespace foretrain {

/// One scenario on more and more GPUs.
struct ScalingChart {
  CurveChart steps = {};             ///< seconds of a step; places are numbers of GPUs
  std::string samples = {};          ///< their name: "images"
  std::vector<double> batches = {};  ///< so many of them make a step at each place

  /// Samples a second, and their share of the ideal: that of the best way on the fewest GPUs, times the others.
  [[nodiscard]] CurveChart throughput() const;
  [[nodiscard]] CurveChart efficiency() const;
  /// Samples a second of one GPU where the fewest do the step; the best way's. 0 where nothing is predicted.
  [[nodiscard]] double ideal_of_a_gpu() const;
};

/// A table per chart: GPU counts down, algorithms across, and how many times as long the slowest takes as the fastest.
std::string to_text(const std::vector<ScalingChart>& charts);

/// Throughput above, and below it its share of the ideal.
Figure to_figure(const std::vector<ScalingChart>& charts);

}  // namespace foretrain
