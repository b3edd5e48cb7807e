// Time and memory of attention over the sequence's length, by algorithm.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "reports/figure/curves.hpp"

namespace foretrain {

struct AttentionChart {
  CurveChart times;       ///< seconds by length, a curve for each algorithm; none where it does not fit into the device
  CurveChart memory;      ///< bytes at its peak
  double capacity = 0.0;  ///< of the device
};

/// The first place from which on curve `later` takes less time than curve `first` wherever both fit; nothing where
/// there is none.
std::optional<std::size_t> crossover(const CurveChart& times, std::size_t first, std::size_t later);

/// Lengths down, algorithms across, times and memory; under it where each algorithm begins to beat the first.
std::string to_text(const AttentionChart& attention);

/// Two panels, time and memory, all axes logarithmic.
Figure to_figure(const AttentionChart& attention);

}  // namespace foretrain
