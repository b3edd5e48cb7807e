#include "model/scenario/hardware/calibration_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/cost/power.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/figures.hpp"

namespace foretrain {

namespace {

/// Numbers of a covariance may be negative, which no quantity of a scenario is.
double signed_number(const Field& field) {
  const std::string& text = field.text();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || !std::isfinite(value)) {
    field.fail(fmt::format("\"{}\" is no number", text), "a finite number");
  }
  return value;
}

FittedUncertainty read_uncertainty(const Field& covariance, const std::optional<Field>& spread,
                                   const Calibration& calibration) {
  FittedUncertainty result;
  const MappingReader keys = covariance.mapping(keys::covariance);
  const std::vector<std::string>& fitted = calibration.calibrated->fitted;
  for (const Field& name : keys["constants"].list()) {
    (void)known_constant(name.text(), name.where(), name.path());
    if (std::find(fitted.begin(), fitted.end(), name.text()) == fitted.end()) {
      name.fail(fmt::format("{} is not among this file's constants", name.text()), "a key of `constants`");
    }
    result.names.push_back(name.text());
  }
  const std::vector<Field> rows = keys["rows"].list();
  if (rows.size() != result.names.size()) {
    keys.fail("rows", fmt::format("{} rows for {} constants", rows.size(), result.names.size()), "as many of both");
  }
  for (const Field& row : rows) {
    std::vector<double> values;
    for (const Field& value : row.list()) values.push_back(signed_number(value));
    if (values.size() != result.names.size()) {
      row.fail(fmt::format("{} numbers for {} constants", values.size(), result.names.size()), "a square matrix");
    }
    result.covariance.push_back(std::move(values));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (result.covariance[i][i] < 0.0) rows[i].fail("a negative variance", "a variance of zero or more");
    for (std::size_t j = 0; j < i; ++j) {
      const double a = result.covariance[i][j], b = result.covariance[j][i];
      if (std::abs(a - b) > 1e-6 * std::sqrt(result.covariance[i][i] * result.covariance[j][j])) {
        rows[i].fail("not symmetric", "a symmetric matrix");
      }
    }
  }
  if (spread && spread->is_mapping()) {
    for (const YamlEntry& entry : spread->node().entries) {
      result.spread[entry.key] = spread->below(entry).number();
    }
  }
  return result;
}

CalibratedGpu read_gpu_entry(const MappingReader& file) {
  const MappingReader keys = file["gpu"].mapping(keys::measured_gpu);
  CalibratedGpu gpu;
  gpu.name = keys["name"].text();
  keys.fill(gpu);
  gpu.file = file.field().where().file;
  return gpu;
}

bool carries_over(const std::string& name, bool same_generation) {
  return same_generation || name.starts_with("host.");
}

/// What does not carry over returns to the base.
void return_to_base(Calibration& calibration, bool same_generation) {
  CalibratedGpu& machine = *calibration.calibrated;
  const YamlNode name = yaml_scalar(machine.base, {machine.file, 0, 0});
  Calibration base = load_calibration(catalogue_file(CatalogueSection::calibration, Field(name, "base")));
  std::set<std::string> returned;
  for (const std::string& fitted : machine.fitted) {
    if (carries_over(fitted, same_generation)) continue;
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

/// The calibrations that are being read, each the base of the one before it.
struct BasesBeingRead {
  std::vector<std::string> files;
};

/// The base of a calibration, unless the way there leads back to it.
Calibration load_base(const Field& named) {
  const std::filesystem::path base = catalogue_file(CatalogueSection::calibration, named);
  std::vector<std::string>& way = session().part<BasesBeingRead>().files;
  way.push_back(named.where().file);
  const auto leave = [](std::vector<std::string>* files) { files->pop_back(); };
  const std::unique_ptr<std::vector<std::string>, decltype(leave)> until_read(&way, leave);
  std::error_code unseen;
  const auto again = std::ranges::find_if(
      way, [&](const std::string& file) { return std::filesystem::equivalent(file, base, unseen); });
  if (again != way.end()) {
    named.fail(fmt::format("this calibration is its own base: {} → {}", fmt::join(std::vector(again, way.end()), " → "),
                           *again),
               "published");
  }
  return load_calibration(base);
}

}  // namespace

Calibration read_machine_calibration(const Field& document) {
  const MappingReader file = document.mapping(keys::machine_calibration);
  if (file["format"].text() != calibration_format) {
    file.fail("format", fmt::format("unknown format \"{}\"", file["format"].text()),
              fmt::format("\"{}\", as `foretrain calibrate` writes it", calibration_format));
  }
  if (file["kind"].text() != "calibration") file.fail("kind", "this file is no calibration", "kind: calibration");
  Calibration calibration = load_base(file["base"]);
  if (calibration.calibrated) file.fail("base", "the base is a calibration of a machine itself", "published");
  calibration.name = file["name"].text();
  calibration.calibrated = read_gpu_entry(file);
  calibration.calibrated->base = file["base"].text();
  calibration.calibrated->fitted = adopt_constants(file["constants"], keys::fitted_constant, calibration);
  if (const auto covariance = file.find("covariance")) {
    calibration.fitted = read_uncertainty(*covariance, file.find("spread"), calibration);
  }
  if (const auto rows = file.find("measured_matmuls")) calibration.measured_matmuls = read_measured_matmuls(*rows);
  return calibration;
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
