#include "model/workload/length_distribution.hpp"

#include <cmath>

#include "model/base/statistics.hpp"

namespace foretrain {

namespace {

std::vector<WeightedValue> uniform_values(double from, double to) {
  std::vector<WeightedValue> values;
  const double step = (to - from) / density_cells;
  for (int i = 0; i < density_cells; ++i) values.push_back({from + (i + 0.5) * step, 1.0 / density_cells});
  return values;
}

// A lognormal variable of mean m and standard deviation s·m is exp(μ + σz) with σ² = ln(1 + s²), μ = ln m − σ²/2.
std::vector<WeightedValue> lognormal_values(double mean, double spread) {
  constexpr double reach = 5.0;
  const double sigma = std::sqrt(std::log1p(spread * spread));
  std::vector<WeightedValue> values;
  const double step = 2.0 * reach / density_cells;
  double found = 0.0;
  double total = 0.0;
  for (int i = 0; i < density_cells; ++i) {
    const double low = -reach + i * step;
    const WeightedValue cell{std::exp(sigma * (low + 0.5 * step)),
                             normal_cumulative(low + step) - normal_cumulative(low)};
    values.push_back(cell);
    found += cell.value * cell.weight;
    total += cell.weight;
  }
  for (WeightedValue& cell : values) cell.value *= mean * total / found;
  return values;
}

}  // namespace

std::vector<WeightedValue> normalised(std::vector<WeightedValue> values) {
  std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  std::vector<WeightedValue> joined;
  double total = 0.0;
  for (const WeightedValue& cell : values) {
    if (!(cell.weight > 0.0)) continue;
    total += cell.weight;
    if (!joined.empty() && joined.back().value == cell.value) {
      joined.back().weight += cell.weight;
    } else {
      joined.push_back(cell);
    }
  }
  for (WeightedValue& cell : joined) cell.weight /= total;
  return joined;
}

std::vector<WeightedValue> values_of(const LengthDistribution& distribution) {
  switch (distribution.kind) {
    case LengthDistribution::Kind::fixed:
      return {{distribution.value, 1.0}};
    case LengthDistribution::Kind::uniform:
      return normalised(uniform_values(distribution.from, distribution.to));
    case LengthDistribution::Kind::lognormal:
      if (!(distribution.spread > 0.0)) return {{distribution.mean, 1.0}};
      return normalised(lognormal_values(distribution.mean, distribution.spread));
    case LengthDistribution::Kind::histogram:
      return normalised(distribution.histogram);
  }
  return {};
}

std::vector<WeightedValue> whole_values_of(const LengthDistribution& distribution) {
  std::vector<WeightedValue> whole;
  for (const WeightedValue& cell : values_of(distribution)) {
    const double below = std::floor(cell.value);
    const double above_share = cell.value - below;
    whole.push_back({below, cell.weight * (1.0 - above_share)});
    whole.push_back({below + 1.0, cell.weight * above_share});
  }
  return normalised(std::move(whole));
}

double moment(const std::vector<WeightedValue>& values, int power) {
  double sum = 0.0;
  for (const WeightedValue& cell : values) sum += cell.weight * std::pow(cell.value, power);
  return sum;
}

double largest_moment(const std::vector<WeightedValue>& values, double count, int power) {
  double sum = 0.0;
  double cumulative = 0.0;
  double before = 0.0;
  for (const WeightedValue& cell : values) {
    cumulative = std::min(cumulative + cell.weight, 1.0);
    const double now = &cell == &values.back() ? 1.0 : std::pow(cumulative, count);
    sum += (now - before) * std::pow(cell.value, power);
    before = now;
  }
  return sum;
}

}  // namespace foretrain
