// The calibration file that a fit leaves; model/scenario/machine_calibration.* reads it.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "model/scenario/hardware/calibration_reader.hpp"
#include "validate/fit/gpu_fit.hpp"

namespace foretrain {

namespace {

using nlohmann::ordered_json;

/// Seven digits: the file must give the fit's predictions back.
double rounded(double value) {
  if (value == 0.0 || !std::isfinite(value)) return 0.0;
  const double scale = std::pow(10.0, 6.0 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

/// A number or "5.65 us", as scenario files state it.
ordered_json stated_value(const std::string& name, double value) {
  const std::string& unit = constant_row(name).unit;
  if (unit.empty()) return rounded(value);
  return fmt::format("{:.7g} {}", value, unit);
}

ordered_json gpu_of(const GpuCalibration& fit) {
  const MeasuredGpu& device = fit.machine.gpus.front();
  ordered_json gpu = {{"name", fit.gpu},
                      {"device", device.name},
                      {"compute_capability", fmt::format("{:.1f}", device.compute_capability)}};
  if (fit.figures.memory_latency) {
    gpu["memory_latency"] = fmt::format("{:.5g} ns", fit.figures.memory_latency->value() * 1e9);
  }
  if (fit.figures.l2_bandwidth) {
    gpu["l2_bandwidth"] = fmt::format("{:.5g} GB/s", fit.figures.l2_bandwidth->value() * 1e-9);
  }
  // The driver's and the architecture's values, also if the catalogue has a datasheet.
  gpu["description"] = ordered_json::parse(gpu_document(device, fit.figures));
  return gpu;
}

ordered_json constants_of(const GpuCalibration& fit) {
  ordered_json constants = ordered_json::object();
  for (const RobustConstant& constant : fit.direct) {
    constants[constant.name] = {{"value", stated_value(constant.name, constant.after)},
                                {"kind", "measurement"},
                                {"standard_error", rounded(constant.standard_error)},
                                {"source", constant.source}};
  }
  for (const RobustConstant& constant : fit.fitted) {
    constants[constant.name] = {{"value", stated_value(constant.name, constant.after)},
                                {"kind", "fit"},
                                {"standard_error", rounded(constant.standard_error)},
                                {"published", rounded(constant.before)}};
    if (constant.at_bound) constants[constant.name]["at_bound"] = true;
    constants[constant.name]["source"] = constant.source;
  }
  return constants;
}

ordered_json undetermined_of(const GpuCalibration& fit) {
  ordered_json list = ordered_json::array();
  for (const Undetermined& one : fit.undetermined) list.push_back({{"constant", one.name}, {"why", one.why}});
  return list;
}

ordered_json residuals_of(const GpuCalibration& fit) {
  ordered_json list = ordered_json::array();
  for (const PointErrors& group : fit.errors) {
    list.push_back({{"group", group.group},
                    {"held_out", group.held_out},
                    {"points", group.points},
                    {"mape", rounded(group.mape)},
                    {"bias", rounded(group.bias)},
                    {"worst", rounded(group.worst)},
                    {"worst_point", group.worst_point}});
  }
  return list;
}

ordered_json bars_of(const GpuCalibration& fit) {
  ordered_json list = ordered_json::array();
  for (const AccuracyBar& bar : fit.bars) {
    ordered_json row = {{"of", bar.name}, {"bar", bar.limit}, {"points", bar.points}};
    if (bar.points > 0) {
      row["held_out"] = bar.held_out;
      row["mape"] = rounded(bar.mape);
      row["met"] = bar.met();
    }
    list.push_back(row);
  }
  return list;
}

ordered_json stages_of(const GpuCalibration& fit) {
  ordered_json list = ordered_json::array();
  for (const StageTrial& trial : fit.stages) {
    list.push_back({{"stage", trial.name},
                    {"points", trial.points},
                    {"kept", trial.adopted},
                    {"judged", trial.judged},
                    {"held_out", trial.held_out},
                    {"mape", rounded(trial.fitted)},
                    {"mape_published", rounded(trial.published)}});
  }
  return list;
}

ordered_json provenance_of(const GpuCalibration& fit) {
  ordered_json suites = ordered_json::object();
  for (const auto& [name, count] : fit.suites) {
    suites[name] = {{"measured", count.measured}, {"failed", count.failed},     {"skipped", count.skipped},
                    {"fitted", count.fitted},     {"held_out", count.held_out}, {"read_off", count.direct},
                    {"drawn", count.drawn},       {"left_out", count.left_out}};
  }
  return {{"date", fit.machine.date},
          {"kernel", fit.machine.kernel},
          {"driver", fit.machine.driver},
          {"versions", fit.machine.versions},
          {"gpus", fit.machine.gpus.size()},
          {"suites", suites},
          {"stages", stages_of(fit)},
          {"products", fit.matmul_note},
          {"not_understood", fit.not_understood.size()}};
}

ordered_json products_of(const GpuCalibration& fit) {
  ordered_json list = ordered_json::array();
  for (const MeasuredMatmul& row : fit.measured_matmuls) {
    ordered_json entry = {
        {"gpu", row.gpu}, {"precision", name(row.precision)}, {"m", row.m}, {"n", row.n}, {"k", row.k}};
    if (row.batch != 1) entry["batch"] = row.batch;
    if (row.transpose_a) entry["transpose_a"] = true;
    if (row.transpose_b) entry["transpose_b"] = true;
    entry["time"] = fmt::format("{:.5g} us", row.time.value() * 1e6);
    entry["source"] = fit.machine.date.empty() ? "measured" : fit.machine.date;
    list.push_back(entry);
  }
  return list;
}

/// Long lists one entry a line, so that files can be read and compared.
std::string lines_of(const ordered_json& list) {
  if (!list.is_structured() || list.empty()) return list.dump();
  std::string text = list.is_array() ? "[" : "{";
  bool first = true;
  for (const auto& [key, value] : list.items()) {
    text += first ? "\n    " : ",\n    ";
    if (list.is_object()) text += ordered_json(key).dump() + ": ";
    text += value.dump();
    first = false;
  }
  return text + (list.is_array() ? "\n  ]" : "\n  }");
}

}  // namespace

std::string to_json(const GpuCalibration& fit) {
  ordered_json covariance_rows = ordered_json::array();
  for (const auto& row : fit.covariance.rowwise()) {
    ordered_json numbers = ordered_json::array();
    for (const double value : row) numbers.push_back(rounded(value));
    covariance_rows.push_back(numbers);
  }
  ordered_json spread = ordered_json::object();
  for (const auto& [family, value] : fit.spread) spread[family] = rounded(value);
  const ordered_json document = {
      {"format", calibration_format},
      {"kind", "calibration"},
      {"name", fmt::format("{} measured {}", fit.gpu, fit.machine.date)},
      {"description", fmt::format("constants of {}, fitted by foretrain calibrate", fit.machine.gpus.front().name)},
      {"base", fit.base},
      {"gpu", gpu_of(fit)},
      {"node", ordered_json::parse(fit.node)},
      {"constants", constants_of(fit)},
      {"undetermined", undetermined_of(fit)},
      {"covariance", {{"constants", fit.covariance_names}, {"rows", covariance_rows}}},
      {"spread", spread},
      {"residuals", residuals_of(fit)},
      {"bars", bars_of(fit)},
      {"provenance", provenance_of(fit)},
      {"measured_matmuls", products_of(fit)}};
  std::string text = "{";
  for (const auto& [key, value] : document.items()) {
    text += fmt::format("{}\n  \"{}\": {}", text.size() > 1 ? "," : "", key, lines_of(value));
  }
  return text + "\n}\n";
}

}  // namespace foretrain
