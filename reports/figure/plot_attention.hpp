// Time and memory of attention over the sequence's length, by algorithm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/figure/time_curves.hpp"

namespace foretrain {

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
