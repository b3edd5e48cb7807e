// What is drawn of predictions and machines, one figure each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/hardware/cluster.hpp"
#include "model/result.hpp"
#include "reports/figure/curves.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

/// A measured case over one of its table's columns: predictions are drawn as lines, measurements as points.
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

/// Breakdown of a step's time.
struct BreakdownBar {
  std::string label;
  Breakdown breakdown;
  std::string remark = {};  ///< written behind the step's time, e.g. "10.2 samples/s"
};

/// The bars in the given order from top to bottom: in units of time where they can be compared, in shares of the step
/// where the longest would dwarf the shortest.
Figure to_figure(const std::vector<BreakdownBar>& bars);

/// One scenario on more and more GPUs, one curve per synchronisation algorithm.
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

/// Step time, and other quantities, over the values of one key.
struct SweepChart {
  std::string key;                          ///< varied key: "plan.sync.bucket"
  CurveChart times;                         ///< seconds, whole steps first; without places the labels are names
  std::size_t steps = 1;                    ///< number of curves of whole steps; the others are parts of the first
  std::vector<CurveChart> quantities = {};  ///< that are asked for; none: the times
};

/// Values down, curves across; under it, the best value of each step.
std::string to_text(const SweepChart& sweep);

/// The shortest time of each step is marked unless it is at an end. Quantities have a panel each; over names they are
/// bars.
Figure to_figure(const SweepChart& sweep);

/// Timeline of a step: one row for each stream, copy engine, link and host thread.
struct TimelineFigure {
  std::string title;
  std::vector<TimelineEntry> entries = {};
  Seconds from = {};                    ///< the part of the time that is shown
  Seconds until = Seconds::infinity();  ///< infinity: to the end
  int pixels = 760;                     ///< bars that are narrower than one of these are drawn as one
};

/// Host threads stand above the rest, otherwise rows keep the order of the entries. A bar that has room for it carries
/// its name; bars too narrow to be seen apart are drawn as one. Throws UsageError where nothing happens in
/// the part that is shown.
Figure to_figure(const TimelineFigure& timeline);

/// Drawing of one machine as it is wired, with the fabric above it if there are several: boxes for sockets, switches,
/// GPUs and NICs, lines by kinds of links, whose bandwidths the legend tells.
struct TopologyPicture {
  std::string title;
  Node node;
  Network network = {};                           ///< of the machine's cards: the node's own, or the cluster's
  std::optional<Cluster> cluster = std::nullopt;  ///< of nodes that are all alike
  double width_cm = 0.0;                          ///< as in Figure
};

/// If all parts of a row would be too narrow to read, it shows the first and the last.
Figure to_figure(const TopologyPicture& picture);

/// The panel of one machine, so many pixels wide.
Panel node_panel(const Node& node, const Network& network, int width);

/// The levels of the fabric behind the cards in words, with their counts, a line each.
std::string fabric_text(const Cluster& cluster);

/// The same in words: the fabric, then the machine's wiring.
std::string to_text(const TopologyPicture& picture);

}  // namespace foretrain
