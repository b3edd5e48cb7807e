// Roofline plot of a scenario's operators.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/hardware/precision.hpp"
#include "model/scenario/scenario.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

/// An operator, or all of one name in a training step: work, least traffic and time on the device added up.
struct RooflinePoint {
  std::string name;
  Precision precision = Precision::fp32;
  Flops flops;
  Bytes bytes;
  Seconds time;
  std::string bound;     ///< of the longest of them
  Seconds longest = {};  ///< that takes

  [[nodiscard]] FlopsPerByte intensity() const { return flops / bytes; }
  [[nodiscard]] FlopsPerSecond rate() const { return flops / time; }
  /// Work without arithmetic (copies, look-ups, reads) has no place on the picture.
  [[nodiscard]] bool drawable() const { return flops.value() > 0.0 && bytes.value() > 0.0 && time.value() > 0.0; }
};

/// A horizontal roof: the peak rate of one or several precisions that share it.
struct Roof {
  std::string name;  ///< "fp16, bf16 (tensor cores)"
  FlopsPerSecond rate;
};

/// One GPU with the points of the scenarios that run on it.
struct RooflinePanel {
  std::string gpu;
  BytesPerSecond bandwidth;
  std::vector<Roof> roofs;  ///< fastest first
  std::vector<RooflinePoint> points;

  /// The most that arithmetic of this intensity reaches under the roof of its precision.
  [[nodiscard]] FlopsPerSecond roof_over(const RooflinePoint& point) const;
  std::vector<std::pair<Precision, FlopsPerSecond>> peaks;  ///< by precision
};

struct RooflineFigure {
  std::vector<RooflinePanel> panels;
};

/// One panel for each GPU, in the order of its first scenario. Scenarios may be an operator, tasks or training; the
/// name of an operator scenario names its point. Throws UsageError for collectives, and as build_model does.
RooflineFigure roofline_figure(const std::vector<Scenario>& scenarios);

/// One panel per GPU; points are as large as their share of the panel's time, the longest are named. Throws UsageError
/// for a panel without any point to draw.
Figure to_figure(const RooflineFigure& roofline);

/// Per GPU a table, longest time first: time, FLOP per byte, rate, share of the roof, bound.
std::string to_text(const RooflineFigure& figure);

}  // namespace foretrain
