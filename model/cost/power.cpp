#include "model/cost/power.hpp"

namespace foretrain {

namespace {
constexpr double tensor_memory_since = 10.0, tensor_memory_until = 12.0;
}  // namespace

std::size_t generation_of(double compute_capability) {
  std::size_t generation = 0;
  while (generation + 1 < chip_generations.size() &&
         chip_generations[generation + 1].compute_capability <= compute_capability) {
    ++generation;
  }
  return generation;
}

std::size_t generation_of(const Gpu& gpu) {
  return gpu.architecture == chip_generations.back().name ? chip_generations.size() - 1
                                                          : generation_of(gpu.compute_capability);
}

bool uses_tensor_cores(const Gpu& gpu, Precision precision) {
  return precision != Precision::fp32 && gpu.has_tensor_cores(gpu.arithmetic_precision(precision));
}

bool has_tensor_memory(const Gpu& gpu) {
  return gpu.compute_capability >= tensor_memory_since && gpu.compute_capability < tensor_memory_until;
}

Gpu gpu_in_step(const Gpu& gpu, const StepConstants& constants) {
  Gpu allowed = gpu;
  allowed.board_power_watts *= constants.power_allowance;
  return allowed;
}

double sustained_clock(const Gpu& gpu, Precision precision, const PowerConstants& constants, double utilisation) {
  if (gpu.board_power_watts <= 0.0) return 1.0;
  const GenerationPower& energy = constants.generation[generation_of(gpu)];
  const bool tensor = uses_tensor_cores(gpu, precision);
  const Bytes width = bytes_per_element(gpu.arithmetic_precision(precision));
  const double relative_width = width / bytes_per_element(tensor ? Precision::fp16 : Precision::fp32);
  const double tera_rate = gpu.matrix_rate(precision).value() * 1e-12;
  const double operand_share = has_tensor_memory(gpu) ? constants.blackwell_operand_share : constants.operand_share;
  const double relative_energy = 1.0 - operand_share + operand_share * relative_width;
  const double wanted =
      (tensor ? energy.tensor_watts : energy.vector_watts) * relative_energy * tera_rate * utilisation;
  const double granted = gpu.board_power_watts * (1.0 - constants.static_share);
  if (wanted <= granted) return 1.0;
  // Newton's method on the increasing, convex power curve, from the right: converges without overshooting.
  const double share = granted / wanted;
  const double floor = constants.voltage_floor;
  double clock = 1.0;
  for (int i = 0; i < 6; ++i) {
    const double voltage = floor + (1.0 - floor) * clock;
    const double power = clock * voltage * voltage;
    const double slope = voltage * voltage + 2.0 * clock * voltage * (1.0 - floor);
    clock -= (power - share) / slope;
  }
  return clock;
}

}  // namespace foretrain
