#include "validate/fit/process_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace foretrain {

std::optional<double> scaled_energy(const std::set<std::size_t>& known, std::size_t target,
                                    const PowerConstants& constants, NotedNumber GenerationPower::*unit) {
  struct Mean {
    double sum = 0.0;
    int count = 0;
    [[nodiscard]] double value() const { return sum / count; }
  };
  std::map<double, Mean> by_process;
  for (const std::size_t i : known) {
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

}  // namespace foretrain
