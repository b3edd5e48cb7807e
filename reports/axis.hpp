// Axes of plots: which unit, which scale, and where labels go so that none covers another.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// A unit for an axis of times.
struct TimeUnit {
  std::string_view name;
  Seconds size;
};

/// The unit in which the largest time is at least one: s, ms or µs.
TimeUnit time_unit(Seconds largest);

/// An axis is logarithmic once its largest value is more than this many times the smallest.
inline constexpr double widest_linear_ratio = 15.0;

/// gnuplot's list of tics on a logarithmic axis: the powers of ten from `low` to `high` and, unless that is many, twice
/// and five times them.
std::string logarithmic_tics(double low, double high, bool powers_alone = false);

/// Width in pixels to set aside for a line of text in the pictures' sans serif font, of which only the viewer knows the
/// exact shape.
int text_width(std::string_view text, int font_pixels = 13);

/// Moves positions apart, keeping their order, until neighbours are at least `gap` apart and none lies outside
/// [low, high]; each moves as little as its neighbours allow. When there is no room for all, they are spread evenly.
std::vector<double> spread(const std::vector<double>& positions, double gap, double low, double high);

}  // namespace foretrain
