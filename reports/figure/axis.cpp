#include "reports/figure/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "reports/print/number.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

TimeUnit time_unit(Seconds largest) {
  static constexpr std::array<TimeUnit, 3> units = {
      {{"s", Seconds(1.0)}, {"ms", Seconds(1e-3)}, {"µs", Seconds(1e-6)}}};
  const auto* unit = std::ranges::find_if(units, [&](const TimeUnit& u) { return largest >= u.size; });
  return unit == units.end() ? units.back() : *unit;
}

double Axis::place(double value) const {
  return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
}

bool spans_decades(double low, double high) {
  constexpr double widest_linear_ratio = 15.0;
  return low > 0.0 && high / low > widest_linear_ratio;
}

bool grow_by_factors(const std::vector<double>& values) {
  if (values.front() <= 0.0) return false;
  if (values.size() < 3) return values.back() >= 4.0 * values.front();
  // The widest interval over the narrowest: 1 where all are alike.
  const auto unevenness = [&](auto interval) {
    double least = std::numeric_limits<double>::infinity(), most = 0.0;
    for (std::size_t i = 1; i < values.size(); ++i) {
      const double one = interval(values[i - 1], values[i]);
      least = std::min(least, one);
      most = std::max(most, one);
    }
    return most / least;
  };
  return unevenness([](double a, double b) { return std::log(b / a); }) <
         unevenness([](double a, double b) { return b - a; });
}

std::string common_unit(std::vector<std::string>& labels) {
  std::string unit;
  std::vector<std::string> numbers;
  for (const std::string& label : labels) {
    const std::size_t blank = label.find(' ');
    if (blank == std::string::npos || (!unit.empty() && label.substr(blank + 1) != unit)) return "";
    unit = label.substr(blank + 1);
    numbers.push_back(label.substr(0, blank));
  }
  labels = std::move(numbers);
  return unit;
}

std::string si_text(double value, std::string_view unit) {
  // Thousands without a unit are "K", as in texts.
  const std::array<std::string_view, 8> prefixes = {"n", "µ", "m", "", unit.empty() ? "K" : "k", "M", "G", "T"};
  constexpr int none = 3;
  const bool bare = unit.empty() && value >= 1e-3 && value < 1e6;
  int prefix = bare || value == 0.0 ? none : none + static_cast<int>(std::floor(std::log10(value) / 3.0 + 1e-9));
  if (unit == "s") prefix = std::min(prefix, none);  // nobody says kiloseconds
  prefix = std::clamp(prefix, 0, static_cast<int>(prefixes.size()) - 1);
  const std::string number = fmt::format("{:.6g}", value / std::pow(10.0, 3.0 * (prefix - none)));
  const std::string word = std::string(prefixes.at(static_cast<std::size_t>(prefix))) + std::string(unit);
  return word.empty() ? number : number + " " + word;
}

void set_range(Axis& axis, const std::vector<double>& values, bool upward) {
  if (axis.low != axis.high) return;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || (axis.logarithmic && value <= 0.0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) low = high = 1.0;
  if (axis.logarithmic) {
    const double room = upward ? 1.4 : std::max(1.08, std::pow(high / low, 0.02));
    axis.low = low / room;
    axis.high = high * room;
  } else if (upward) {
    axis.high = high > 0.0 ? high * 1.07 : 1.0;
  } else {
    const double room = high > low ? (high - low) * 0.02 : 0.5;
    axis.low = low - room;
    axis.high = high + room;
  }
}

namespace {

/// The powers of ten of a logarithmic axis and, unless these are many, twice and five times them.
std::vector<Tic> logarithmic_tics(double low, double high, std::string_view unit) {
  const bool powers_alone = high / low > 1000.0;
  std::vector<Tic> tics;
  for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= high; power *= 10.0) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double at = step * power;
      if ((powers_alone && step != 1.0) || at < low * (1.0 - 1e-9) || at > high) continue;
      tics.push_back({at, si_text(at, unit)});
    }
  }
  return tics;
}

/// Round numbers, at most so many.
std::vector<Tic> linear_tics(double low, double high, int most) {
  const double least = std::abs(high - low) / std::max(most, 1);
  if (!(least > 0.0)) return {{low, grouped(fmt::format("{:.6g}", low))}};
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  double step = 10.0 * power;
  for (const double round : {1.0, 2.0, 5.0}) {
    if (round * power >= least * (1.0 - 1e-9)) {
      step = round * power;
      break;
    }
  }
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  const double first = std::min(low, high), last = std::max(low, high);
  std::vector<Tic> tics;
  for (double number = std::ceil(first / step - 1e-9); number * step <= last + 1e-9 * step; number += 1.0) {
    const double at = number == 0.0 ? 0.0 : number * step;
    tics.push_back({at, grouped(fmt::format("{:.{}f}", at, decimals))});
  }
  return tics;
}

/// Half of what a tic's label takes along x, and what is free beside it.
double half_of(const Axis& axis, const Tic& tic) { return 0.5 * text_width(tic.label, axis.font) + 0.25 * axis.font; }

/// Whether tics are as far apart as the first two, at places that increase.
bool evenly_apart(const std::vector<double>& places) {
  for (std::size_t i = 2; i < places.size(); ++i) {
    if (std::abs((places[i] - places[i - 1]) - (places[1] - places[0])) > 1.0) return false;
  }
  return places.size() > 2;
}

/// Leaves every second, third, … label, so that those which stay are evenly apart.
void thin_out(Axis& axis, const std::vector<double>& places) {
  double widest = 0.0;
  for (const Tic& tic : axis.tics) widest = std::max(widest, half_of(axis, tic));
  const auto stride = static_cast<std::size_t>(std::max(1.0, std::ceil(2.0 * widest / (places[1] - places[0]))));
  for (std::size_t i = 0; i < axis.tics.size(); ++i) {
    if (i % stride != 0) axis.tics[i].label.clear();
  }
}

/// Along x, leaves out the labels that would touch another: evenly where tics are evenly apart, else the first and the
/// last stay.
void drop_crowded(Axis& axis, int pixels) {
  std::vector<double> places;
  for (const Tic& tic : axis.tics) places.push_back(axis.place(tic.at) * pixels);
  const auto last = std::find_if(axis.tics.rbegin(), axis.tics.rend(), [](const Tic& t) { return !t.label.empty(); });
  if (last == axis.tics.rend()) return;
  if (evenly_apart(places)) return thin_out(axis, places);
  const double last_at = last->at, end = axis.place(last_at) * pixels - half_of(axis, *last);
  double free = -1e9;
  std::erase_if(axis.tics, [&](const Tic& tic) {
    if (tic.label.empty()) return false;
    const double at = axis.place(tic.at) * pixels, half = half_of(axis, tic);
    const bool first = free < 0.0;
    if (!first && (at - half < free || (tic.at != last_at && at + half > end))) return true;
    free = std::max(0.0, at + half);
    return false;
  });
}

}  // namespace

void choose_tics(Axis& axis, int pixels, bool across) {
  constexpr std::size_t fewest = 2;  // which say how far apart values are
  if (axis.tics.empty() && axis.logarithmic) axis.tics = logarithmic_tics(axis.low, axis.high, axis.unit);
  if (axis.tics.empty() || (axis.logarithmic && axis.tics.size() < fewest)) {
    const int room = 3 * axis.font;  // of a label and what lies between two
    axis.tics = linear_tics(axis.low, axis.high, std::clamp(pixels / room, 2, across ? 10 : 8));
    for (Tic& tic : axis.tics) {
      if (axis.logarithmic && !axis.unit.empty()) tic.label = si_text(tic.at, axis.unit);
    }
  }
  for (Tic& tic : axis.tics) tic.label = grouped(tic.label);
  if (across) drop_crowded(axis, pixels);
}

int text_width(std::string_view text, int font_pixels) {
  constexpr double average_character = 0.59;  // of the font's size: DejaVu Sans, the widest of the fonts asked for
  return static_cast<int>(std::ceil(average_character * font_pixels * static_cast<double>(display_width(text))));
}

std::vector<double> spread(const std::vector<double>& positions, double gap, double low, double high) {
  const std::size_t n = positions.size();
  const double usable = std::min(gap, n > 1 ? (high - low) / static_cast<double>(n - 1) : gap);
  const auto before = [&](std::size_t place) { return usable * static_cast<double>(place); };
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return positions[a] < positions[b]; });
  std::vector<double> result(n);
  for (std::size_t i = 0; i < n; ++i) {
    // Without the gaps below each, places that only must not decrease: isotonic regression, by its formula of the
    // largest of least means of neighbours.
    double place = -std::numeric_limits<double>::infinity();
    for (std::size_t first = 0; first <= i; ++first) {
      double sum = 0.0, least = std::numeric_limits<double>::infinity();
      for (std::size_t last = first; last < n; ++last) {
        sum += positions[order[last]] - before(last);
        if (last >= i) least = std::min(least, sum / static_cast<double>(last - first + 1));
      }
      place = std::max(place, least);
    }
    result[order[i]] = std::min(std::max(place, low), high - before(n - 1)) + before(i);
  }
  return result;
}

}  // namespace foretrain
