// Energy per operation of a chip generation from those of others.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "model/cost/calibration.hpp"
#include "model/cost/power.hpp"

namespace foretrain {

/// Watts per TFLOP/s of generation `target` from the generations in `known` (indices of chip_generations): that of the
/// same process where there is one (the mean, where there are several), else a power law in the process's nanometres
/// through the two nearest processes; one known process gives its own value, none gives nothing. Switching energy falls
/// with the gates' capacitance and the square of the voltage, both of which shrank with the process.
std::optional<double> scaled_energy(const std::set<std::size_t>& known, std::size_t target,
                                    const PowerConstants& constants, NotedNumber GenerationPower::*unit);

}  // namespace foretrain
