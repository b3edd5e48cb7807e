// An accuracy bar that says which row is farthest off where it is missed.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "reports/measured/accuracy.hpp"

namespace foretrain::test {

/// Empty where the mean of the absolute errors is below the bar: CHECK(missed(0.05, errors) == "").
inline std::string missed(double bar, const ErrorStatistics& errors) {
  if (errors.mape < bar) return {};
  return fmt::format("mean error {:.1f} % of {} rows, the bar is {:.1f} %; worst is {}, {:+.1f} %", 100.0 * errors.mape,
                     errors.n, 100.0 * bar, errors.worst_case, 100.0 * errors.worst);
}

}  // namespace foretrain::test
