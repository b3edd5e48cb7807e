#include "validate/host_calibration/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* report_kind = "calibration of a machine";

/// Five digits: more are noise.
double rounded(double value) {
  if (value == 0.0 || !std::isfinite(value)) return 0.0;
  const double scale = std::pow(10.0, 4.0 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

ordered_json to_value(const BenchmarkRow& row) {
  ordered_json value = {{"benchmark", row.benchmark}, {"parameters", row.parameters}};
  if (row.samples > 0) {
    value["measured"] = rounded(row.measured);
    value["unit"] = row.unit;
    value["spread"] = rounded(row.spread);
    value["best"] = rounded(row.best);
  } else {
    value["measured"] = nullptr;
  }
  value["samples"] = row.samples;
  if (!row.values.empty()) {
    std::vector<double> values(row.values);
    for (double& each : values) each = rounded(each);
    value["values"] = std::move(values);
  }
  if (row.predicted) value["predicted"] = rounded(*row.predicted);
  if (!row.note.empty()) value["note"] = row.note;
  return value;
}

BenchmarkRow row_from(const json& value) {
  BenchmarkRow row;
  row.benchmark = value.at("benchmark");
  row.parameters = value.at("parameters");
  row.samples = value.at("samples");
  if (row.samples > 0) {
    row.measured = value.at("measured");
    row.unit = value.at("unit");
    row.spread = value.at("spread");
    row.best = value.at("best");
    if (!std::isfinite(row.measured) || row.measured <= 0.0) {
      throw std::runtime_error(fmt::format("{}: measured {}", row.benchmark, row.measured));
    }
  }
  if (value.contains("values")) row.values = value.at("values").get<std::vector<double>>();
  if (value.contains("predicted")) row.predicted = value.at("predicted").get<double>();
  row.note = value.value("note", "");
  return row;
}

}  // namespace

double BenchmarkRow::reference() const {
  const HostBenchmark* known = find_benchmark(benchmark);
  return known != nullptr && known->part == "memory" && best > 0.0 ? best : measured;
}

std::optional<double> BenchmarkRow::error() const {
  if (samples < 1 || !predicted) return std::nullopt;
  return *predicted / reference() - 1.0;
}

const std::vector<HostBenchmark>& host_benchmarks() {
  static const std::vector<HostBenchmark> table = [] {
    std::vector<HostBenchmark> all;
    const auto add = [&all](const std::vector<HostBenchmark>& part) {
      all.insert(all.end(), part.begin(), part.end());
    };
#define PART(name) add(name##_benchmarks());
#include "validate/host_calibration/parts.def"
    return all;
  }();
  return table;
}

const HostBenchmark* find_benchmark(std::string_view name) {
  const auto found = std::ranges::find(host_benchmarks(), name, &HostBenchmark::name);
  return found == host_benchmarks().end() ? nullptr : &*found;
}

BenchmarkRow row_of(std::string_view benchmark, std::map<std::string, std::string> parameters, const Sampled& samples,
                    std::string_view unit) {
  BenchmarkRow row;
  row.benchmark = benchmark;
  row.parameters = std::move(parameters);
  row.measured = samples.median();
  row.unit = unit;
  row.spread = samples.spread();
  row.samples = static_cast<int>(samples.values.size());
  const auto [low, high] = std::minmax_element(samples.values.begin(), samples.values.end());
  row.best = unit == "s" ? *low : *high;
  const std::size_t count = samples.values.size(), kept = std::min(count, kept_samples);
  for (std::size_t i = 0; i < kept; ++i) row.values.push_back(samples.values[i * count / kept]);
  return row;
}

BenchmarkRow not_measured(std::string_view benchmark, std::map<std::string, std::string> parameters, std::string why) {
  BenchmarkRow row;
  row.benchmark = benchmark;
  row.parameters = std::move(parameters);
  row.note = std::move(why);
  return row;
}

void attempt(std::string_view benchmark, const CalibrationSettings& settings, const RowSink& sink,
             const std::function<void()>& work) {
  try {
    work();
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    sink(not_measured(benchmark, {{"directory", settings.directory}}, error.what()));
  }
}

void predict_rows(CalibrationReport& report, const Node& node) {
  for (BenchmarkRow& row : report.rows) {
    const HostBenchmark* benchmark = find_benchmark(row.benchmark);
    row.predicted =
        benchmark == nullptr || benchmark->predict == nullptr ? std::nullopt : benchmark->predict(row, node);
  }
}

std::string to_json(const CalibrationReport& report) {
  ordered_json document = {{"kind", report_kind},         {"machine", to_value(report.machine)},
                           {"quick", report.quick},       {"complete", report.complete},
                           {"hardware", report.hardware}, {"rows", ordered_json::array()}};
  for (const BenchmarkRow& row : report.rows) document["rows"].push_back(to_value(row));
  return one_entry_a_line(document);
}

CalibrationReport read_calibration_report(const std::string& path) {
  CalibrationReport report;
  read_measured(path, report_kind, "calibrate", [&](const json& document) {
    report.machine = machine_from(document.at("machine"));
    report.quick = document.at("quick");
    report.complete = document.at("complete");
    report.hardware = document.at("hardware");
    for (const json& row : document.at("rows")) report.rows.push_back(row_from(row));
  });
  return report;
}

}  // namespace foretrain
