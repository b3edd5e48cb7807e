#include "model/scenario/hardware/calibration_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "model/base/format.hpp"
#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/seen_files.hpp"
#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/cost/measured_matmul.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/figures.hpp"

namespace foretrain {

namespace {

void check_names(const Field& constants) {
  if (!constants.is_mapping()) constants.fail("constants are no mapping", "{ matmul.tensor_efficiency: { … }, … }");
  for (const YamlEntry& entry : constants.node().entries) {
    (void)known_constant(entry.key, entry.where, constants.below(entry).path());
  }
}

Constant read_constant(const ConstantRow& row, const Field& stated, const keys::Mapping& each) {
  const MappingReader keys = stated.mapping(each);
  return {row.name, read_constant_value(keys["value"], row), row.unit, keys["kind"].choice<ConstantKind>(),
          keys["source"].text()};
}

}  // namespace

double read_constant_value(const Field& value, const ConstantRow& row) {
  const double number = value.parse(
      [&](const std::string& text) { return row.unit.empty() ? parse_number(text) : parse_in_unit(text, row.unit); });
  if (number < row.minimum || number > row.maximum) {
    value.fail(fmt::format("{} {} is outside of what is sensible", number, row.unit),
               fmt::format("from {} to {} {}", row.minimum, row.maximum, row.unit));
  }
  return number;
}

const ConstantRow& known_constant(const std::string& name, const SourcePosition& where, const std::string& path) {
  if (const ConstantRow* row = find_constant(name)) return *row;
  throw ScenarioError(where, path, "unknown constant",
                      did_you_mean(nearest_constant(name), "a constant of the base calibration"));
}

std::vector<std::string> adopt_constants(const Field& constants, const keys::Mapping& each, Calibration& calibration) {
  check_names(constants);
  std::vector<std::string> names;
  for (const YamlEntry& entry : constants.node().entries) {
    const ConstantRow& row = *find_constant(entry.key);
    const Constant stated = read_constant(row, constants.below(entry), each);
    row.field(calibration) = stated.value;
    const auto known = std::ranges::find(calibration.constants, row.name, &Constant::name);
    if (known != calibration.constants.end()) *known = stated;
    names.push_back(row.name);
  }
  return names;
}

std::vector<MeasuredMatmul> read_measured_matmuls(const Field& field) {
  std::vector<MeasuredMatmul> rows;
  for (const Field& row : field.list()) {
    const MappingReader keys = row.mapping(keys::measured_matmul);
    MeasuredMatmul measured;
    keys.fill(measured);
    measured.gpu = keys["gpu"].text();
    measured.where = keys["time"].where();
    if (keys["source"].text().empty()) keys.fail("source", "no source", "where it was measured");
    rows.push_back(std::move(measured));
  }
  return rows;
}

Calibration read_calibration(const Field& document) {
  if (document.node().find("format") != nullptr) return read_machine_calibration(document);
  const MappingReader file = document.mapping(keys::calibration);
  if (file["kind"].text() != "calibration") file.fail("kind", "this file is no calibration", "kind: calibration");
  Calibration calibration;
  calibration.name = file["name"].text();
  const Field constants = file["constants"];
  check_names(constants);
  for (const ConstantRow& row : calibration_rows()) {
    const auto stated = constants.find(row.name);
    if (!stated && row.optional) continue;
    if (!stated) {
      throw ScenarioError(constants.where(), join_path(constants.path(), row.name), "this constant is missing",
                          "{ value: …, kind: fit, source: \"…\" }");
    }
    calibration.constants.push_back(read_constant(row, *stated, keys::constant));
    row.field(calibration) = calibration.constants.back().value;
  }
  number_constants(calibration);
  if (const auto rows = file.find("measured_matmuls")) calibration.measured_matmuls = read_measured_matmuls(*rows);
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

namespace {

/// A machine's calibration names its base, which lies in the catalogue.
struct CalibrationKey {
  using Value = const MadeOfFiles<Calibration>;
  std::string file, catalogue;

  bool operator==(const CalibrationKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(file); }
  [[nodiscard]] std::size_t bytes(const MadeOfFiles<Calibration>&) const { return 100'000; }
};

}  // namespace

Calibration load_calibration(const std::filesystem::path& file) {
  return made_of_files(CalibrationKey{file.string(), data_directory().string()},
                       [&] { return read_calibration(Field(cached_yaml_file(file.string()), "")); })
      ->value;
}

Calibration load_default_calibration() {
  return load_calibration(data_directory() / "calibrations" / (std::string(default_calibration) + ".yaml"));
}

}  // namespace foretrain
