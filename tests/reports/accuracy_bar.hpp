// Accuracy bars over the shipped tables; where one is missed it says which row is farthest off.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/scenario/load/cases.hpp"
#include "reports/measured/accuracy.hpp"
#include "reports/measured/measured.hpp"
#include "sim/simulate.hpp"

namespace foretrain::test {

inline std::vector<Case> shipped_cases(const std::string& table) {
  return read_cases(FORETRAIN_SOURCE_DIR "/scenarios/cases/" + table);
}

/// Of a row whose workload is a collective.
inline double message_of(const Case& row) {
  return std::get<CollectiveWorkload>(scenario_of(row).workload).size.value();
}

/// Errors of the tables' rows by class; rows of the class "" are left out.
inline std::map<std::string, ErrorStatistics> errors_by(const std::function<std::string(const Case&)>& class_of,
                                                        const std::vector<std::string>& tables,
                                                        Fidelity fidelity = Fidelity::estimate) {
  std::map<std::string, std::vector<Comparison>> comparisons;
  for (const std::string& table : tables) {
    for (const Case& row : shipped_cases(table)) {
      const std::string name = class_of(row);
      if (name.empty()) continue;
      for (const Comparison& one : compare(row, predict(scenario_of(row), fidelity))) comparisons[name].push_back(one);
    }
  }
  std::map<std::string, ErrorStatistics> errors;
  for (const auto& [name, members] : comparisons) errors[name] = error_statistics(members);
  return errors;
}

/// Empty where the mean of the absolute errors is below the bar: CHECK(missed(0.05, errors) == "").
inline std::string missed(double bar, const ErrorStatistics& errors) {
  if (errors.mape < bar) return {};
  return fmt::format("mean error {:.1f} % of {} rows, the bar is {:.1f} %; worst is {}, {:+.1f} %", 100.0 * errors.mape,
                     errors.n, 100.0 * bar, errors.worst_case, 100.0 * errors.worst);
}

}  // namespace foretrain::test
