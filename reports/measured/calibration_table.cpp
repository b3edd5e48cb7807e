#include "reports/measured/text_fit.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/base/format.hpp"
#include "model/base/statistics.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

std::string format_value(double value, const std::string& unit) {
  if (unit == "s") return format_seconds(Seconds(value));
  if (unit == "B/s") return format_bandwidth(BytesPerSecond(value));
  if (unit == "FLOP/s") return format_rate(FlopsPerSecond(value));
  if (unit == "1/s") return fmt::format("{:.4g} /s", value);
  return fmt::format("{:.4g} {}", value, unit);
}

std::string parameters_text(const BenchmarkRow& row) {
  std::string text;
  for (const auto& [key, value] : row.parameters) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
  return text;
}

std::string section(const CalibrationReport& report, const HostBenchmark& benchmark) {
  TextTable table("lrrrrrl");
  std::vector<double> errors;
  bool any = false;
  for (const BenchmarkRow& row : report.rows) {
    if (row.benchmark != benchmark.name) continue;
    if (!any) table.add_row({"", "median", "spread", "best", "predicted", "error", ""});
    any = true;
    if (row.samples == 0) {
      table.add_row({parameters_text(row), "-", "", "", "", "", row.note});
      continue;
    }
    const auto error = row.error();
    if (error) errors.push_back(std::abs(*error));
    const bool beyond = error && benchmark.tolerance > 0.0 && !(std::abs(*error) <= benchmark.tolerance);
    table.add_row({parameters_text(row), format_value(row.measured, row.unit), format_percent(row.spread),
                   row.best > 0.0 ? format_value(row.best, row.unit) : "",
                   row.predicted ? format_value(*row.predicted, row.unit) : "-",
                   error ? fmt::format("{:+.1f} %{}", *error * 100.0, beyond ? " !" : "") : "", row.note});
  }
  if (!any) return "";
  std::string text = fmt::format("{}: {}\n", benchmark.name, benchmark.description);
  text += table.text(2);
  if (!errors.empty()) {
    text +=
        fmt::format("  median error {:.1f} %, worst {:.1f} %", median(errors) * 100.0, quantile(errors, 1.0) * 100.0);
    text += benchmark.tolerance > 0.0 ? fmt::format(", allowed {:.0f} %\n", benchmark.tolerance * 100.0) : "\n";
  }
  return text + "\n";
}

}  // namespace

std::string to_text(const CalibrationReport& report) {
  std::string text = fmt::format("{}{}\n\n", describe(report.machine), report.complete ? "" : "  (incomplete)");
  for (const HostBenchmark& benchmark : host_benchmarks()) text += section(report, benchmark);
  return text;
}

}  // namespace foretrain
