// Times over the values of an axis, as tables and as pictures: steps by number of GPUs, by the values of one key,
// attention by length. Each compares several ways of doing the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "reports/figure.hpp"
#include "reports/table.hpp"

namespace foretrain {

struct TimeCurve {
  std::string name;                           ///< "ring"
  std::vector<std::optional<Seconds>> times;  ///< one per value of the axis; absent where there is no prediction
};

/// Whether every value has a prediction.
bool is_complete(const std::vector<TimeCurve>& curves);

/// Shortest and longest of the first `count` curves; infinity and zero where there is no time.
struct TimeRange {
  Seconds low = Seconds::infinity(), high;
};
TimeRange time_range(const std::vector<TimeCurve>& curves, std::size_t count);

/// A line with a dot at each time, in units of `unit`.
Series to_series(const TimeCurve& curve, const std::vector<double>& values, Seconds unit);

/// "ring  220 ms": a curve's name and its last time, for the end of its line.
std::string end_of(const TimeCurve& curve);

/// Values down, curves across. `absent` stands where there is no time.
std::vector<std::vector<std::string>> time_cells(const std::string& axis, const std::vector<std::string>& values,
                                                 const std::vector<TimeCurve>& curves, const std::string& absent = "-");

/// Rows of cells aligned at the right, the first of them the header.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

// ---- step time by number of GPUs: a curve per synchronisation algorithm, a panel per scenario

struct ScalingPanel {
  std::string title;              ///< the scenario's name
  std::string subtitle;           ///< what is kept equal: "128 samples per GPU"
  std::vector<TimeCurve> curves;  ///< one time per GPU count of the figure
};

struct ScalingFigure {
  std::vector<int> gpus;  ///< increasing
  std::vector<ScalingPanel> panels;
};

/// A table per panel: GPU counts down, algorithms across, and how many times as long the slowest takes as the fastest.
std::string to_text(const ScalingFigure& scaling);

Figure to_figure(const ScalingFigure& scaling);

// ---- step time over the values of one key, and where it is shortest

struct SweepFigure {
  std::string title;                ///< the scenario's name
  std::string key;                  ///< what is varied: "plan.sync.bucket"
  std::vector<std::string> labels;  ///< its values as written, increasing: "25 MB"
  std::vector<double> values;       ///< the same as numbers of one unit
  std::vector<TimeCurve> curves;    ///< whole steps first
  std::size_t steps = 1;            ///< how many of the curves are whole steps; the others are parts of the first
};

/// Values down, curves across; under it, the best value of each step.
std::string to_text(const SweepFigure& sweep);

/// The shortest time of each step is marked unless it is at an end. Axes are logarithmic where values or times span
/// decades.
Figure to_figure(const SweepFigure& sweep);

// ---- time and memory of attention over the sequence's length, by algorithm

/// An algorithm, as scenarios name it: its times by length, absent where it does not fit into the device.
struct AttentionCurve : TimeCurve {
  std::vector<Bytes> memory;  ///< at its peak
};

struct AttentionFigure {
  std::string title;
  std::string passes;  ///< "forward and backward"
  std::vector<std::int64_t> lengths;
  std::vector<AttentionCurve> curves;
  Bytes capacity;  ///< of the device
};

/// The shortest length of the figure from which on curve `later` takes less time than curve `first` wherever both fit;
/// nothing where there is none.
std::optional<std::int64_t> crossover(const AttentionFigure& attention, std::size_t first, std::size_t later);

/// Lengths down, algorithms across, times and memory; under it where each algorithm begins to beat the first.
std::string to_text(const AttentionFigure& attention);

/// Two panels, time and memory, all axes logarithmic.
Figure to_figure(const AttentionFigure& attention);

}  // namespace foretrain
