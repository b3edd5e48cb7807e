// scenarios/calibrations/*.yaml: the constants of the cost models, and the files that `foretrain calibrate` writes
// ("foretrain calibration 1"): constants of one machine over a base.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/cost/calibration.hpp"
#include "model/hardware/cluster.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// Name of the calibration that scenarios use unless they name another (`calibration:`).
inline constexpr std::string_view default_calibration = "published";
inline constexpr std::string_view calibration_format = "foretrain calibration 1";

/// Reads `kind: calibration` from a document. Every row of calibration_rows() must be there, within its bounds, and
/// nothing else; a row with a unit takes a quantity of that dimension. A document with `format:` is one that `foretrain
/// calibrate` wrote. Throws ScenarioError.
Calibration read_calibration(const Field& document);

/// Throws ScenarioError for a measured product that is faster than the GPU's datasheet allows by more than a seventh.
void check_measured_matmuls(const Calibration& calibration, const Gpu& gpu);

/// The number of a constant in its row's unit, within its bounds.
double read_constant_value(const Field& value, const ConstantRow& row);
/// Puts constants in the place of the calibration's; their names.
std::vector<std::string> adopt_constants(const Field& constants, Calibration& calibration);

/// Reads a file once per process (again when it has changed).
Calibration load_calibration(const std::filesystem::path& file);

/// The one called default_calibration, in data_directory().
Calibration load_default_calibration();

/// Puts the calibration to use on this GPU. The one that was measured gets its measured figures. For any other, what
/// carries over stays: of a chip of the same generation all constants, of another only those of the host; the rest
/// returns to the base. Measured products count on their own GPU alone. Says so in `warnings` and in the sources of the
/// constants. Does nothing for calibrations of no machine.
void adapt_calibration(Calibration& calibration, Gpu& gpu);

/// Adapts a calibration of hosts beside GPUs to a processor as the device: the thread that dispatches also computes,
/// and a core's time for sending and receiving at the NIC's rate comes from the concurrent backward pass. States so in
/// the sources of the constants. Does nothing for GPUs.
void adapt_to_processor(Calibration& calibration, const Cluster& cluster);

}  // namespace foretrain
