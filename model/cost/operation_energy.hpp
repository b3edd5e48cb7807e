// Energy per operation of a chip generation from those of others.
#pragma once

#include <cstddef>
#include <optional>
#include <set>

#include "model/cost/calibration.hpp"

namespace foretrain {

/// Picojoules per operation at 1 GHz of generation `target` from the generations in `known` (indices of
/// chip_generations): that of the same process where there is one (the mean, where there are several), else a power law in
/// the process's nanometres through the two nearest processes; one known process gives its own value, none gives
/// nothing. Switching energy falls with the gates' capacitance and the square of the voltage, both of which shrank with
/// the process. Of tensor cores only those count that multiply alike (multiplies_in_groups).
std::optional<double> scaled_energy(const std::set<std::size_t>& known, std::size_t target,
                                    const PowerConstants& constants, NotedNumber GenerationPower::*unit);

/// What an operation takes on this generation's tensor cores at 1 GHz: what was found for it, or else what follows from the
/// others. Zero: nothing is known.
double tensor_energy(const PowerConstants& constants, std::size_t generation);

}  // namespace foretrain
