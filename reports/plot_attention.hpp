// Time and memory of attention over the sequence's length, by algorithm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

struct AttentionCurve {
  std::string name;                           ///< the algorithm, as in scenarios
  std::vector<std::optional<Seconds>> times;  ///< one per length; absent where it does not fit into the device
  std::vector<Bytes> memory;                  ///< at its peak
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
std::optional<std::int64_t> crossover(const AttentionFigure& figure, std::size_t first, std::size_t later);

/// Lengths down, algorithms across, times and memory; under it where each algorithm begins to beat the first.
std::string to_text(const AttentionFigure& figure);

/// Two panels as SVG, time and memory, all axes logarithmic. Throws as run_gnuplot does.
std::string to_svg(const AttentionFigure& figure);

}  // namespace foretrain
