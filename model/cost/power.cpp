#include "model/cost/power.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "model/base/number.hpp"
#include "model/base/reads.hpp"

namespace foretrain {

namespace {
constexpr double warp_groups_since = 9.0, warp_groups_until = 11.0;
// Instead of 1,024 on other boards of these chips (scenarios/hardware/architectures.yaml).
constexpr double geforce_operations = 512.0;
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
  if (!gpu.amd()) return generation_of(gpu.compute_capability);
  return at_index(std::ranges::find(chip_generations, gpu.architecture, &ChipGeneration::name) -
                  chip_generations.begin());
}

bool uses_tensor_cores(const Gpu& gpu, Precision precision) {
  return precision != Precision::fp32 && gpu.has_tensor_cores(gpu.arithmetic_precision(precision));
}

bool has_warp_groups(double compute_capability) {
  return compute_capability >= warp_groups_since && compute_capability < warp_groups_until;
}

bool has_warp_groups(const Gpu& gpu) { return has_warp_groups(gpu.compute_capability); }

bool has_tensor_memory(const Gpu& gpu) {
  return gpu.compute_capability >= tensor_memory_since && gpu.compute_capability < tensor_memory_until;
}

bool is_geforce(const Gpu& gpu) {
  constexpr auto fp16 = static_cast<std::size_t>(Precision::fp16);
  note_read(Gpu::rate_number(fp16, true));
  const double rate = gpu.tensor_rate[fp16].value();
  const double clocks = gpu.sms * gpu.boost_clock.value();
  return rate > 0.0 && rate < 1.5 * geforce_operations * clocks;
}

Gpu gpu_in_step(const Gpu& gpu, const StepConstants& constants) {
  Gpu allowed = gpu;
  allowed.board_power_watts *= constants.power_allowance;
  if (!is_geforce(gpu)) return allowed;
  allowed.memory_bandwidth *= constants.geforce_bandwidth;
  allowed.boost_clock *= constants.geforce_clock;
  allowed.l2_bandwidth *= constants.geforce_clock;
  for (auto* rates : {&allowed.vector_rate, &allowed.tensor_rate}) {
    for (FlopsPerSecond& rate : *rates) rate *= constants.geforce_clock;
  }
  return allowed;
}

double sustained_clock(const Gpu& gpu, Precision precision, const PowerConstants& constants, double utilisation) {
  if (gpu.board_power_watts <= 0.0) return 1.0;
  const std::size_t generation = generation_of(gpu);
  const bool tensor = uses_tensor_cores(gpu, precision);
  const double at_one = tensor ? tensor_energy(constants, generation) : constants.generation[generation].vector_pj;
  if (!(at_one > 0.0)) return 1.0;  // nobody measured it
  const double gigahertz = gpu.boost_clock.value() * 1e-9;
  const double energy = at_one * gigahertz * gigahertz;
  const Bytes width = bytes_per_element(gpu.arithmetic_precision(precision));
  const double relative_width = width / bytes_per_element(tensor ? Precision::fp16 : Precision::fp32);
  const double tera_rate = gpu.matrix_rate(precision).value() * 1e-12;
  const double relative_energy =
      relative_width == 1.0 ? 1.0 : 1.0 - constants.operand_share + constants.operand_share * relative_width;
  const double wanted = energy * relative_energy * tera_rate * utilisation;
  const double granted = gpu.board_power_watts * (1.0 - constants.static_share);
  return wanted <= granted ? 1.0 : std::cbrt(granted / wanted);
}

namespace {

constexpr auto tensor = &GenerationPower::tensor_pj;

// Instructions of a warp take their operands from registers, those of groups of warps from shared memory, once for all.
bool alike(std::size_t a, std::size_t b) {
  return has_warp_groups(chip_generations[a].compute_capability) ==
         has_warp_groups(chip_generations[b].compute_capability);
}

}  // namespace

std::optional<double> scaled_energy(const std::set<std::size_t>& known, std::size_t target,
                                    const PowerConstants& constants, TrackedNumber GenerationPower::*unit) {
  struct Mean {
    double sum = 0.0;
    int count = 0;
    [[nodiscard]] double value() const { return sum / count; }
  };
  std::map<double, Mean> by_process;
  for (const std::size_t i : known) {
    if (unit == tensor && !alike(i, target)) continue;
    Mean& mean = by_process[chip_generations[i].process_nm];
    mean.sum += constants.generation[i].*unit;
    ++mean.count;
  }
  if (by_process.empty()) return std::nullopt;
  const double process = chip_generations[target].process_nm;
  if (by_process.size() == 1) return by_process.begin()->second.value();
  if (const auto same = by_process.find(process); same != by_process.end()) return same->second.value();

  std::vector<std::pair<double, double>> nearest;  // (process, energy), the nearest in ratio first
  for (const auto& [nm, mean] : by_process) nearest.emplace_back(nm, mean.value());
  std::stable_sort(nearest.begin(), nearest.end(), [process](const auto& a, const auto& b) {
    return std::abs(std::log(a.first / process)) < std::abs(std::log(b.first / process));
  });
  const auto [nm0, energy0] = nearest[0];
  const auto [nm1, energy1] = nearest[1];
  const double exponent = std::log(energy1 / energy0) / std::log(nm1 / nm0);
  return energy0 * std::pow(process / nm0, exponent);
}

double tensor_energy(const PowerConstants& constants, std::size_t generation) {
  if (const double own = constants.generation[generation].tensor_pj; own > 0.0) return own;
  std::set<std::size_t> known;
  for (std::size_t i = 0; i < chip_generations.size(); ++i) {
    if (alike(i, generation) && constants.generation[i].tensor_pj > 0.0) known.insert(i);
  }
  return scaled_energy(known, generation, constants, tensor).value_or(0.0);
}

}  // namespace foretrain
