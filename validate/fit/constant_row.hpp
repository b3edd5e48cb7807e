// Constants by name.
#pragma once

#include <string>

#include "model/cost/calibration.hpp"

namespace foretrain {

/// The row of calibration_rows() with this name. Throws UsageError for an unknown one, naming the nearest.
const ConstantRow& constant_row(const std::string& name);

/// "power.hopper_tensor_pj": the energy of a generation's operations (index into chip_generations).
std::string energy_name(std::size_t generation, bool tensor);

}  // namespace foretrain
