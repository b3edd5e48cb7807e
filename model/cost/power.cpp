#include "model/cost/power.hpp"

#include <algorithm>

namespace foretrain {
namespace {

const ArchitecturePower& architecture_power(const Gpu& gpu, const PowerConstants& constants) {
  const auto found = std::find(power_architectures.begin(), power_architectures.end(), gpu.architecture);
  const auto index = found == power_architectures.end() ? power_architectures.size() - 1
                                                        : static_cast<std::size_t>(found - power_architectures.begin());
  return constants.architecture[index];
}

}  // namespace

bool uses_tensor_cores(const Gpu& gpu, Precision precision) {
  return precision != Precision::fp32 && gpu.has_tensor_cores(precision);
}

double sustained_clock(const Gpu& gpu, Precision precision, const PowerConstants& constants) {
  if (gpu.board_power_watts <= 0.0) return 1.0;
  const ArchitecturePower& energy = architecture_power(gpu, constants);
  const bool tensor = uses_tensor_cores(gpu, precision);
  const double width = bytes_per_element(precision).value() / (tensor ? 2.0 : 4.0);
  const double tera_rate = gpu.matrix_rate(precision).value() * 1e-12;
  const double wanted = (tensor ? energy.tensor_watts : energy.vector_watts) * width * tera_rate;
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
