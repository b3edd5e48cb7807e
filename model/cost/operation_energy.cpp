#include "model/cost/operation_energy.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "model/cost/power.hpp"

namespace foretrain {
namespace {

constexpr auto tensor = &GenerationPower::tensor_pj;

// Instructions of a warp take their operands from registers, those of groups of warps from shared memory, once for all.
bool alike(std::size_t a, std::size_t b) {
  return has_warp_groups(chip_generations[a].compute_capability) ==
         has_warp_groups(chip_generations[b].compute_capability);
}

}  // namespace

std::optional<double> scaled_energy(const std::set<std::size_t>& known, std::size_t target,
                                    const PowerConstants& constants, NotedNumber GenerationPower::*unit) {
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
