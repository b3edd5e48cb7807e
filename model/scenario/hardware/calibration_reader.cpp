#include "model/scenario/hardware/calibration_reader.hpp"

#include <cmath>
#include <cstdlib>

#include "model/base/format.hpp"
#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/cost/measured_matmul.hpp"
#include "model/cost/power.hpp"
#include "model/scenario/figures.hpp"
#include "model/scenario/read_once.hpp"

namespace foretrain {

namespace {

/// The constant with this name. Throws ScenarioError for an unknown one, naming the nearest.
const ConstantRow& known_constant(const std::string& name, const SourcePosition& where, const std::string& path) {
  if (const ConstantRow* row = find_constant(name)) return *row;
  throw ScenarioError(where, path, "unknown constant",
                      did_you_mean(nearest_constant(name), "a constant of the base calibration"));
}

std::vector<const ConstantRow*> stated_rows(const Field& constants) {
  constants.fail_if(!constants.is_mapping(), "constants are no mapping", "{ matmul.tensor_efficiency: { … }, … }");
  std::vector<const ConstantRow*> rows;
  for (const YamlEntry& entry : constants.node().entries) {
    rows.push_back(&known_constant(entry.key, entry.where, constants.below(entry).path()));
  }
  return rows;
}

Constant read_constant(const ConstantRow& row, const Field& stated) {
  const MappingReader keys = stated.mapping();
  return {row.name, read_constant_value(keys["value"], row), row.unit, keys["kind"].as<ConstantKind>(),
          keys["source"].text()};
}

/// Numbers of a covariance may be negative, which no quantity of a scenario is.
double signed_number(const Field& field) {
  const std::string& text = field.text();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  field.fail_if(text.empty() || end != text.c_str() + text.size() || !std::isfinite(value), "\"{}\" is no number",
                "a finite number", text);
  return value;
}

FittedUncertainty read_uncertainty(const Field& covariance, const std::optional<Field>& spread,
                                   const Calibration& calibration) {
  FittedUncertainty result;
  const MappingReader keys = covariance.mapping();
  const std::vector<std::string>& fitted = calibration.calibrated->fitted;
  for (const Field& name : keys["constants"].list()) {
    (void)known_constant(name.text(), name.where(), name.path());
    name.fail_if(std::ranges::count(fitted, name.text()) == 0, "{} is not among this file's constants",
                 "a key of `constants`", name.text());
    result.names.push_back(name.text());
  }
  const std::vector<Field> rows = keys["rows"].list();
  keys.fail_if(rows.size() != result.names.size(), "rows", "{} rows for {} constants", "as many of both", rows.size(),
               result.names.size());
  for (const Field& row : rows) {
    std::vector<double> values;
    for (const Field& value : row.list()) values.push_back(signed_number(value));
    row.fail_if(values.size() != result.names.size(), "{} numbers for {} constants", "a square matrix", values.size(),
                result.names.size());
    result.covariance.push_back(std::move(values));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].fail_if(result.covariance[i][i] < 0.0, "a negative variance", "a variance of zero or more");
  }
  if (spread && spread->is_mapping()) {
    for (const YamlEntry& entry : spread->node().entries) {
      result.spread[entry.key] = spread->below(entry).as<double>();
    }
  }
  return result;
}

/// Resets constants that do not carry over to the base.
void return_to_base(Calibration& calibration, bool same_generation) {
  CalibratedGpu& machine = *calibration.calibrated;
  const Field name(yaml_scalar(machine.base, {machine.file, 0, 0}), "base");
  Calibration base = load_calibration(catalogue_file(Catalogue::calibration, name));
  std::set<std::string> returned;
  for (const std::string& fitted : machine.fitted) {
    if (same_generation || fitted.starts_with("host.")) continue;
    returned.insert(fitted);
    const ConstantRow& row = *find_constant(fitted);
    row.field(calibration) = row.field(base);
  }
  for (std::size_t i = 0; i < calibration.constants.size(); ++i) {
    if (returned.contains(calibration.constants[i].name)) calibration.constants[i] = base.constants[i];
  }
  std::erase_if(machine.fitted, [&](const std::string& fitted) { return returned.contains(fitted); });
  // Spreads and covariance are those of another GPU: results go back to the published shares.
  if (!same_generation) calibration.fitted.reset();
}

void read_measured_matmuls(const MappingReader& file, Calibration& calibration) {
  for (const Field& row : file.list("measured_matmuls")) {
    const MappingReader keys = row.mapping();
    MeasuredMatmul& measured = calibration.measured_matmuls.emplace_back();
    keys.fill(measured);
    measured.where = keys["time"].where();
    keys.fail_if(keys["source"].text().empty(), "source", "no source", "where it was measured");
  }
}

void require_calibration(const MappingReader& file) {
  file.fail_if(file["kind"].text() != "calibration", "kind", "this file is no calibration", "kind: calibration");
}

/// The same of a document with `format:`, as `foretrain calibrate` writes it: the constants of its base, with the
/// fitted ones in their place, their covariance, and what was measured of the GPU. JSON is YAML, so that complaints
/// have a position.
Calibration read_machine_calibration(const Field& document) {
  const MappingReader file = document.mapping(keys::machine_calibration);
  file.fail_if(file["format"].text() != calibration_format, "format", "unknown format \"{}\"",
               "\"{1}\", as `foretrain calibrate` writes it", file["format"].text(), calibration_format);
  require_calibration(file);
  const std::filesystem::path base = catalogue_file(Catalogue::calibration, file["base"]);
  const bool of_machine = cached_yaml_file(base.string()).find("format") != nullptr;
  file.fail_if(of_machine, "base", "the base is a calibration of a machine itself", "published");
  Calibration calibration = load_calibration(base);
  calibration.name = file["name"].text();
  file["gpu"].mapping().fill(calibration.calibrated.emplace());
  calibration.calibrated->file = file.field().where().file;
  calibration.calibrated->base = file["base"].text();
  calibration.calibrated->fitted = adopt_constants(file["constants"], calibration);
  if (const auto covariance = file.find("covariance")) {
    calibration.fitted = read_uncertainty(*covariance, file.find("spread"), calibration);
  }
  read_measured_matmuls(file, calibration);
  return calibration;
}

}  // namespace

std::vector<std::string> adopt_constants(const Field& constants, Calibration& calibration) {
  std::vector<std::string> names;
  for (const ConstantRow* row : stated_rows(constants)) {
    const Constant stated = read_constant(*row, *constants.find(row->name));
    row->field(calibration) = stated.value;
    const auto known = std::ranges::find(calibration.constants, row->name, &Constant::name);
    if (known != calibration.constants.end()) *known = stated;
    names.push_back(row->name);
  }
  return names;
}

double read_constant_value(const Field& value, const ConstantRow& row) {
  const double number = value.parse(
      [&](const std::string& text) { return row.unit.empty() ? parse_number(text) : parse_in_unit(text, row.unit); });
  value.fail_if(number < row.minimum || number > row.maximum, "{0} {1} is outside of what is sensible",
                "from {2} to {3} {1}", number, row.unit, row.minimum, row.maximum);
  return number;
}

Calibration read_calibration(const Field& document) {
  if (document.node().find("format") != nullptr) return read_machine_calibration(document);
  const MappingReader file = document.mapping(keys::calibration);
  require_calibration(file);
  Calibration calibration;
  calibration.name = file["name"].text();
  const Field constants = file["constants"];
  static_cast<void>(stated_rows(constants));
  for (const ConstantRow& row : calibration_rows()) {
    const auto stated = constants.find(row.name);
    if (!stated && row.optional) continue;
    if (!stated) {
      throw ScenarioError(constants.where(), join_path(constants.path(), row.name), "this constant is missing",
                          "{ value: …, kind: fit, source: \"…\" }");
    }
    calibration.constants.push_back(read_constant(row, *stated));
    row.field(calibration) = calibration.constants.back().value;
  }
  number_constants(calibration);
  read_measured_matmuls(file, calibration);
  return calibration;
}

void check_measured_matmuls(const Calibration& calibration, const Gpu& gpu) {
  for (std::size_t i = 0; i < calibration.measured_matmuls.size(); ++i) {
    const MeasuredMatmul& row = calibration.measured_matmuls[i];
    if (row.gpu != gpu.name) continue;
    const FlopsPerSecond peak = gpu.matrix_rate(row.precision);
    const Flops work = 2.0 * number(row.batch) * number(row.m) * number(row.n) * number(row.k) * Flops(1.0);
    const Seconds least = least_possible_time(row, gpu);
    if (row.time >= least) continue;
    throw ScenarioError(
        row.where, fmt::format("measured_matmuls[{}].time", i),
        fmt::format("{} would be {:.3g} TFLOP/s of {}'s {:.4g} in {}", format_seconds(row.time),
                    (work / row.time).value() * 1e-12, gpu.name, peak.value() * 1e-12, name(row.precision)),
        fmt::format("at least {}, of a run that waited for the device, and the precision that was "
                    "multiplied in",
                    format_seconds(least)));
  }
}

Calibration load_calibration(const std::filesystem::path& file) {
  return read_once(Field(yaml_scalar(file.string(), {}), ""),
                   [](const Field& name) { return read_calibration(Field(cached_yaml_file(name.text()), "")); });
}

Calibration load_default_calibration() {
  return load_calibration(data_directory() / "calibrations" / (std::string(default_calibration) + ".yaml"));
}

void adapt_calibration(Calibration& calibration, Gpu& gpu) {
  if (!calibration.calibrated) return;
  const CalibratedGpu machine = *calibration.calibrated;
  if (machine.name == gpu.name) {
    if (machine.memory_latency > Seconds(0.0)) gpu.memory_latency = machine.memory_latency;
    if (machine.l2_bandwidth > BytesPerSecond(0.0)) gpu.l2_bandwidth = machine.l2_bandwidth;
    for (Constant& constant : gpu.constants) {
      const bool latency = constant.name.ends_with("memory_latency") && machine.memory_latency > Seconds(0.0);
      const bool cache = constant.name.ends_with("l2_bandwidth") && machine.l2_bandwidth > BytesPerSecond(0.0);
      if (!latency && !cache) continue;
      constant.kind = ConstantKind::measurement;
      constant.source = machine.file;
    }
    return;
  }
  const bool same = generation_of(machine.compute_capability) == generation_of(gpu.compute_capability);
  const std::size_t fitted = machine.fitted.size();
  return_to_base(calibration, same);
  const std::string rest = same ? "its products and figures of the GPU do not"
                                : "constants of kernels and links come from the calibration " + machine.base;
  calibration.warnings.push_back(
      fmt::format("the calibration {} was measured on {}, this GPU is {}: {} of its {} constants carry over, {}",
                  calibration.name, machine.name, gpu.name, calibration.calibrated->fitted.size(), fitted, rest));
  calibration.constants.push_back({"calibration.carried_over",
                                   static_cast<double>(calibration.calibrated->fitted.size()), "",
                                   ConstantKind::assumption, calibration.warnings.back()});
}

void adapt_to_processor(Calibration& calibration, const Cluster& cluster) {
  if (!cluster.node.gpu.processor) return;
  const Processor& processor = *cluster.node.gpu.processor;
  const BytesPerSecond cards = cluster.network.nic_bandwidth * number(cluster.network.nics_per_node);
  const double sending = std::min(1.0, cards / (processor.transfer_rate * processor.share));
  const std::pair<std::string_view, double> values[] = {
      {"host.dispatch_us", 0.0},
      {"host.compiled_dispatch_us", 0.0},
      {"host.graph_launch_us", 0.0},
      {"host.step_us", 0.0},
      {"step.kernel_stretch", 1.0},
      {"step.device_spread", processor.spread},
      {"collective.overlap_slowdown", sending},
      {"memory.communicator_mib", 0.0},
      {"memory.context_mib", processor.process.value() / Bytes(1.0_MiB).value()},
      {"memory.fragmentation", 0.0}};
  for (const auto& [name, value] : values) {
    find_constant(name)->field(calibration) = value;
    const auto constant = std::ranges::find(calibration.constants, name, &Constant::name);
    if (constant == calibration.constants.end()) continue;
    constant->value = value;
    constant->kind = ConstantKind::assumption;
    constant->source = "a processor that trains: it dispatches, computes and sends itself (its entry `processor`)";
  }
}

}  // namespace foretrain
