// Clocks under load: how far a board's power limit slows arithmetic down.
#pragma once

#include <cstddef>
#include <optional>
#include <set>

#include "model/cost/calibration.hpp"
#include "model/hardware/gpu.hpp"

namespace foretrain {

/// The index in chip_generations whose energies a chip of this compute capability has.
std::size_t generation_of(double compute_capability);
/// Generation of a GPU: that of its architecture, if it is listed.
std::size_t generation_of(const Gpu& gpu);

/// Whether GEMMs of this precision run on tensor cores (plain fp32 never does; see Gpu::matrix_rate).
bool uses_tensor_cores(const Gpu& gpu, Precision precision);

/// Architectures whose full tensor-core rate needs instructions that a group of four warps or a thread issues for a
/// whole tile (PTX ISA: wgmma, sm_90a; tcgen05, sm_100a to sm_103a): Hopper and Blackwell's data-centre chips.
bool has_warp_groups(double compute_capability);
bool has_warp_groups(const Gpu& gpu);

/// Whether accumulators have a memory of their own, from Blackwell's data-centre chips on, but for its consumer chips
/// (PTX ISA: tcgen05).
bool has_tensor_memory(const Gpu& gpu);

/// Whether tensor cores accumulate in fp32 at half the chip's rate, as those of boards sold as GeForce do.
bool is_geforce(const Gpu& gpu);

/// The GPU of a training step, whose board regulates its power over many kernels (StepConstants::power_allowance);
/// a GeForce's clock rises above its rating.
Gpu gpu_in_step(const Gpu& gpu, const StepConstants& constants);

/// Clock under sustained matrix arithmetic over boost clock, at most 1. The power of a peak rate R at relative clock f
/// is
///   static share · board power + energy per operation · R · f³
/// (switching power goes with the square of the voltage, which is taken to rise as the clock does), and f is the
/// largest that keeps it within the board's power. Energy per operation at 1 GHz is a property of the chip's
/// generation, and at the boost clock its square as much; operand_share of it goes with the width of the operands, the
/// rest is accumulation. A board without stated power is not limited. `utilisation` is the share of the peak rate that
/// the kernel keeps busy at the boost clock.
double sustained_clock(const Gpu& gpu, Precision precision, const PowerConstants& constants, double utilisation = 1.0);

/// Picojoules per operation at 1 GHz of generation `target` from the generations in `known` (indices of
/// chip_generations). It is that of the same process (the mean of several), else a power law in nanometres through the
/// two nearest processes. One known process gives its own value, none gives nothing. Switching energy falls with the
/// gates' capacitance and the square of the voltage, both of which shrank with the process. Of tensor cores only those
/// count that multiply alike (multiplies_in_groups).
std::optional<double> scaled_energy(const std::set<std::size_t>& known, std::size_t target,
                                    const PowerConstants& constants, TrackedNumber GenerationPower::*unit);

/// Energy of an operation on this generation's tensor cores at 1 GHz: fitted, or else derived from
/// the others. Zero: nothing is known.
double tensor_energy(const PowerConstants& constants, std::size_t generation);

}  // namespace foretrain
