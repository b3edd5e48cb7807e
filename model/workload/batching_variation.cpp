// Variation of the passes of replicas that wait for each other.
#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"
#include "model/base/statistics.hpp"
#include "model/workload/batching.hpp"

namespace foretrain {

namespace {

constexpr double reach = 8.0;  // standard deviations
constexpr int cells = 800;
constexpr int most_convolved = 8;  // passes; the sum of more is near enough to a normal variable
constexpr int cells_of_pass = 128;

double work_of(const Sample& sample, const WorkWeights& work) {
  return work.per_token * sample.tokens + work.per_pair * sample.tokens * sample.tokens +
         work.per_image * sample.images;
}

/// Padded to the longest of `m` samples: that one is sample i with probability Cᵢᵐ − Cᵢ₋₁ᵐ. The others are shorter or
/// as long; their images count with their mean.
std::vector<WeightedValue> padded_work(const SampleMix& mix, double m, const WorkWeights& work) {
  std::vector<WeightedValue> values;
  double cumulative = 0.0;
  double before = 0.0;
  double images = 0.0;  // those of samples up to this one, times their weight
  for (const Sample& sample : mix.samples) {
    cumulative = std::min(cumulative + sample.weight, 1.0);
    images += sample.weight * sample.images;
    const double now = &sample == &mix.samples.back() ? 1.0 : std::pow(cumulative, m);
    const double all_images = sample.images + (m - 1.0) * images / cumulative;
    values.push_back({m * (work.per_token * sample.tokens + work.per_pair * sample.tokens * sample.tokens) +
                          work.per_image * all_images,
                      now - before});
    before = now;
  }
  return normalised(std::move(values));
}

std::vector<WeightedValue> normal_values(double mean, double deviation) {
  std::vector<WeightedValue> values;
  constexpr double step = 2.0 * reach / density_cells;
  for (int i = 0; i < density_cells; ++i) {
    const double low = -reach + i * step;
    values.push_back({mean + deviation * (low + 0.5 * step), normal_cumulative(low + step) - normal_cumulative(low)});
  }
  return normalised(std::move(values));
}

/// All tokens are computed wherever samples begin and end, so that only what does not go with the length varies. The
/// residual e = work − tokens · E[work]/E[tokens] of each of the m samples, by the central limit theorem of renewal
/// rewards (variance m · Var e).
std::vector<WeightedValue> fixed_length_work(const SampleMix& mix, double m, WorkWeights work, bool by_length) {
  work.per_token = 0.0;
  double mean = 0.0;
  for (const Sample& sample : mix.samples) mean += sample.weight * work_of(sample, work);
  const double slope = by_length ? mean / mix.tokens() : 0.0;
  double variance = 0.0;
  for (const Sample& sample : mix.samples) {
    const double residual = work_of(sample, work) - slope * sample.tokens - (by_length ? 0.0 : mean);
    variance += sample.weight * residual * residual;
  }
  return normal_values(m * mean, std::sqrt(m * variance));
}

/// E[largest of `replicas` sums of `passes` draws], by convolution on a grid. A value between two cells is divided
/// between them, which keeps the mean.
double largest_sum(const std::vector<WeightedValue>& values, int passes, int replicas) {
  const double low = values.front().value;
  const double step = (values.back().value - low) / cells_of_pass;
  if (!(step > 0.0)) return low * passes;
  std::vector<double> one(cells_of_pass + 2, 0.0);
  for (const WeightedValue& cell : values) {
    const double at = (cell.value - low) / step;
    const double below = std::floor(at);
    one[static_cast<std::size_t>(below)] += cell.weight * (1.0 - (at - below));
    one[static_cast<std::size_t>(below) + 1] += cell.weight * (at - below);
  }
  std::vector<double> sum = one;
  for (int pass = 1; pass < passes; ++pass) {
    std::vector<double> next(sum.size() + one.size() - 1, 0.0);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      for (std::size_t j = 0; j < one.size(); ++j) next[i + j] += sum[i] * one[j];
    }
    sum = std::move(next);
  }
  std::vector<WeightedValue> sums;
  for (std::size_t i = 0; i < sum.size(); ++i) sums.push_back({passes * low + number(i) * step, sum[i]});
  return largest_moment(normalised(std::move(sums)), replicas);
}

/// The same for many passes, by the sum's mean, variance and skewness (Cornish–Fisher). `values` have a mean of zero.
double largest_long_sum(const std::vector<WeightedValue>& values, int passes, int replicas) {
  const double variance = moment(values, 2);
  if (!(variance > 0.0)) return 0.0;
  const double skewness = moment(values, 3) / std::pow(variance, 1.5) / std::sqrt(number(passes));
  double expected = 0.0;
  double before = 0.0;
  for (int i = 0; i < cells; ++i) {
    const double low = -reach + 2.0 * reach * i / cells;
    const double z = low + reach / cells;
    const double now = std::pow(normal_cumulative(low + 2.0 * reach / cells), replicas);
    expected += (now - before) * (z + skewness / 6.0 * (z * z - 1.0));
    before = now;
  }
  return std::max(expected, 0.0) * std::sqrt(variance * passes);
}

}  // namespace

PassVariation pass_variation(const SampleMix& mix, const Batching& batching, std::int64_t micro_batch,
                             const WorkWeights& work) {
  const auto m = number(micro_batch);
  PassVariation variation;
  double constant = 0.0;  // the same in every pass
  if (batching.kind == Batching::Kind::packing) {
    variation.classes = {fixed_length_work(mix, m, work, true)};
    constant = m * work.per_token * mix.tokens() / packed_share(mix, batching.length);
  } else if (batching.kind == Batching::Kind::unpadded) {
    double mean = 0.0, square = 0.0;
    for (const Sample& sample : mix.samples) {
      mean += sample.weight * work_of(sample, work);
      square += sample.weight * work_of(sample, work) * work_of(sample, work);
    }
    variation.classes = {normal_values(m * mean, std::sqrt(m * std::max(square - mean * mean, 0.0)))};
  } else if (batching.kind == Batching::Kind::maximum) {
    WorkWeights images_only = work;
    images_only.per_pair = 0.0;
    variation.classes = {fixed_length_work(mix, m, images_only, false)};
    constant = m * (work.per_token * mix.limit + work.per_pair * mix.limit * mix.limit);
  } else {
    for (const SampleMix& part : length_classes(mix, batching)) {
      variation.classes.push_back(padded_work(part, m, work));
    }
  }
  double mean = 0.0;
  for (auto& values : variation.classes) {
    for (WeightedValue& cell : values) cell.value += constant;
    mean += moment(values, 1) / number(variation.classes.size());
  }
  for (auto& values : variation.classes) {
    for (WeightedValue& cell : values) cell.value /= mean;
  }
  return variation;
}

double slowest_replica(const PassVariation& variation, int passes, int replicas) {
  if (variation.classes.empty() || replicas <= 1) return 1.0;
  const auto classes = number(variation.classes.size());
  double mean = 0.0;
  double slowest_of_one = 0.0;
  std::vector<WeightedValue> deviations;  // from the mean of the class, which is the same for all replicas
  for (const std::vector<WeightedValue>& values : variation.classes) {
    const double own = moment(values, 1);
    mean += own / classes;
    slowest_of_one += largest_moment(values, replicas) / classes;
    for (const WeightedValue& cell : values) deviations.push_back({cell.value - own, cell.weight / classes});
  }
  if (passes == 1) return slowest_of_one / mean;
  deviations = normalised(std::move(deviations));
  const double excess = passes <= most_convolved ? largest_sum(deviations, passes, replicas)
                                                 : largest_long_sum(deviations, passes, replicas);
  return 1.0 + std::max(excess, 0.0) / (mean * passes);
}

}  // namespace foretrain
