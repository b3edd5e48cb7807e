// scenarios/calibrations/*.yaml: the constants of the cost models.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/cost/calibration.hpp"
#include "model/hardware/gpu.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// Name of the calibration that scenarios use unless they name another (`calibration:`).
inline constexpr std::string_view default_calibration = "published";

/// Reads `kind: calibration` from a document. Every row of calibration_rows() must be there, within its bounds, and
/// nothing else; a row with a unit takes a quantity of that dimension. A document with `format:` is one that `foretrain
/// calibrate` wrote (machine_calibration.hpp). Throws ScenarioError.
Calibration read_calibration(const Field& document);

/// Throws ScenarioError for a measured product that is faster than the GPU's datasheet allows by more than a seventh.
void check_measured_matmuls(const Calibration& calibration, const Gpu& gpu);

/// The constant with this name. Throws ScenarioError for an unknown one, naming the nearest.
const ConstantRow& known_constant(const std::string& name, const SourcePosition& where, const std::string& path);
/// The number of a constant in its row's unit, within its bounds.
double read_constant_value(const Field& value, const ConstantRow& row);
/// Puts constants, each a mapping of these keys, in the place of the calibration's; their names.
std::vector<std::string> adopt_constants(const Field& constants, const keys::Mapping& each, Calibration& calibration);
/// `[ { gpu, precision, m, n, k, batch (= 1), transpose_a, transpose_b (= false), time, source }, … ]`
std::vector<MeasuredMatmul> read_measured_matmuls(const Field& field);

/// Reads a file once per process (again when it has changed).
Calibration load_calibration(const std::filesystem::path& file);

/// The one called default_calibration, in data_directory().
Calibration load_default_calibration();

}  // namespace foretrain
