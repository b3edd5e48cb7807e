#include "reports/figure/time_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/base/format.hpp"
#include "reports/print/names.hpp"

namespace foretrain {

bool is_complete(const std::vector<TimeCurve>& curves) {
  return std::ranges::all_of(curves, [](const TimeCurve& curve) {
    return std::ranges::all_of(curve.times, [](const auto& time) { return time.has_value(); });
  });
}

TimeRange time_range(const std::vector<TimeCurve>& curves, std::size_t count) {
  TimeRange range;
  for (std::size_t i = 0; i < std::min(count, curves.size()); ++i) {
    for (const auto& time : curves[i].times) {
      if (!time) continue;
      range = {std::min(range.low, *time), std::max(range.high, *time)};
    }
  }
  return range;
}

Series to_series(const TimeCurve& curve, const std::vector<double>& values, Seconds unit) {
  Series series{.name = spoken(curve.name), .at_end = true, .value = last_time(curve)};
  series.line = 2.5;
  series.dot = Dot::own;
  series.dot_size = 0.6;
  constexpr std::size_t most_dots = 40;
  if (values.size() > most_dots) series.dot = Dot::none;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& time = curve.times[i];
    series.points.push_back({values[i], time ? *time / unit : std::numeric_limits<double>::quiet_NaN()});
    if (!curve.ranges.empty()) series.ranges.push_back({curve.ranges[i].low / unit, curve.ranges[i].high / unit});
  }
  return series;
}

std::string last_time(const TimeCurve& curve) {
  const auto last = std::find_if(curve.times.rbegin(), curve.times.rend(), [](const auto& t) { return t.has_value(); });
  return last == curve.times.rend() ? "" : format_seconds(**last);
}

std::vector<std::vector<std::string>> time_cells(const std::string& axis, const std::vector<std::string>& values,
                                                 const std::vector<TimeCurve>& curves, const std::string& absent) {
  std::vector<std::vector<std::string>> rows = {{axis}};
  for (const std::string& value : values) rows.push_back({value});
  for (const TimeCurve& curve : curves) {
    rows.front().push_back(curve.name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      rows[i + 1].push_back(curve.times[i] ? format_seconds(*curve.times[i]) : absent);
    }
  }
  return rows;
}

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  TextTable table(std::string(rows.front().size(), 'r'), rows.front());
  for (std::size_t i = 1; i < rows.size(); ++i) table.add_row(rows[i]);
  return table.text(2);
}

}  // namespace foretrain
