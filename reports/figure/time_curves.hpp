// Times over the values of an axis, for pictures and tables that compare several ways of doing the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "reports/figure/figure.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

/// From shortest to longest.
struct TimeRange {
  Seconds low = Seconds::infinity(), high;
};

struct TimeCurve {
  std::string name;                           ///< "ring"
  std::vector<std::optional<Seconds>> times;  ///< one per value of the axis; absent where there is no prediction
  std::vector<TimeRange> ranges = {};         ///< of the predictions, to be drawn as a band; none: no band
};

/// Whether every value has a prediction.
bool is_complete(const std::vector<TimeCurve>& curves);

/// That of the first `count` curves; infinity and zero where there is no time.
TimeRange time_range(const std::vector<TimeCurve>& curves, std::size_t count);

/// A line with a dot at each time, in units of `unit`.
Series to_series(const TimeCurve& curve, const std::vector<double>& values, Seconds unit);

/// A curve's last time, for the end of its line: "220 ms".
std::string last_time(const TimeCurve& curve);

/// Values down, curves across. `absent` stands where there is no time.
std::vector<std::vector<std::string>> time_cells(const std::string& axis, const std::vector<std::string>& values,
                                                 const std::vector<TimeCurve>& curves, const std::string& absent = "-");

/// Rows of cells aligned at the right, the first of them the header.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

}  // namespace foretrain
