// Axes of pictures: which unit, which scale, which tics, and where labels go so that none covers another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

struct Tic {
  double at = 0.0;
  std::string label;
};

struct Axis {
  std::string name = {};  ///< unit included
  bool logarithmic = false;
  double low = 0.0, high = 0.0;  ///< equal: as wide as what is drawn
  std::vector<Tic> tics = {};    ///< none: chosen by the range. Along x, a label that would touch another is left out
  std::string unit = {};         ///< stands at the tics of a logarithmic axis with its prefix: "10 µs"
  bool grid = false;             ///< lines across the panel
  int font = 13;

  /// 0 at the axis' beginning, 1 at its end.
  [[nodiscard]] double place(double value) const;
};

/// A unit for an axis of times.
struct TimeUnit {
  std::string_view name;
  Seconds size;
};

/// The unit in which the largest time is at least one: s, ms or µs.
TimeUnit time_unit(Seconds largest);

/// Whether an axis with these values should be logarithmic.
bool spans_decades(double low, double high);

/// Whether values, increasing, grow by factors rather than by steps: 1, 2, 4, 8, but not 1, 2, 3, 4.
bool grow_by_factors(const std::vector<double>& values);

/// Takes the unit off labels that all have the same, and returns it; empty where they have none, or several.
std::string common_unit(std::vector<std::string>& labels);

/// "10 µs", "2 M", "500": the number with the prefix that leaves one to three digits before its point.
std::string si_text(double value, std::string_view unit);

/// The axis as it is drawn along so many pixels: with tics where it leaves them open, and without labels that would
/// touch others.
void choose_tics(Axis& axis, int pixels, bool across);

/// Sets open ends of the axis to a range around the values and tics: linear ones that go `upward` start at zero, the
/// rest has some room on both sides.
void set_range(Axis& axis, const std::vector<double>& values, bool upward);

/// Width in pixels to set aside for a line of text in the pictures' sans serif font, of which only the viewer knows the
/// exact shape.
int text_width(std::string_view text, int font_pixels = 13);

/// Moves positions apart, keeping their order, until neighbours are at least `gap` apart and none lies outside
/// [low, high]; each moves as little as its neighbours allow. When there is no room for all, they are spread evenly.
std::vector<double> spread(const std::vector<double>& positions, double gap, double low, double high);

}  // namespace foretrain
