// Fill of packed sequences.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "model/base/number.hpp"
#include "model/workload/batching.hpp"

namespace foretrain {

namespace {

// Finer lengths than these change the share by less than a thousandth.
constexpr std::int64_t most_positions = 2048;
constexpr std::size_t most_lengths = 64;

struct Step {
  std::size_t positions = 1;
  double weight = 1.0;
};

/// At most `most_lengths` lengths on a grid of positions; the mean of each is kept.
std::vector<Step> steps_of(const std::vector<WeightedValue>& lengths, double unit, std::size_t capacity) {
  std::vector<WeightedValue> coarse;
  if (lengths.size() <= most_lengths) {
    coarse = lengths;
  } else {
    for (std::size_t i = 0; i < most_lengths; ++i) {
      const auto n = number(most_lengths);
      const double from = number(i) / n;
      const double to = (number(i) + 1.0) / n;
      coarse.push_back({moment(between_quantiles(lengths, from, to), 1), 1.0 / n});
    }
  }
  std::vector<Step> steps;
  for (const WeightedValue& length : coarse) {
    const double at = std::clamp(length.value / unit, 1.0, number(capacity));
    const double below = std::floor(at);
    steps.push_back({static_cast<std::size_t>(below), length.weight * (1.0 - (at - below))});
    if (at > below) steps.push_back({static_cast<std::size_t>(below) + 1, length.weight * (at - below)});
  }
  return steps;
}

}  // namespace

// reached[n]: probability that a sequence is filled to exactly n at some time. It ends at n when the next sample is
// longer than what is left; that sample is the first of the next sequence.
double packed_share(const SampleMix& mix, std::int64_t length) {
  const double unit = std::max(1.0, number(length) / number(most_positions));
  const auto capacity = static_cast<std::size_t>(std::llround(number(length) / unit));
  const std::vector<Step> steps = steps_of(mix.lengths(), unit, capacity);
  std::vector<double> first(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) first[i] = steps[i].weight;

  constexpr int most_rounds = 50;
  constexpr double converged = 1e-9;
  double share = 0.0;
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<double> reached(capacity + 1, 0.0);
    for (std::size_t i = 0; i < steps.size(); ++i) reached[steps[i].positions] += first[i];
    std::vector<double> overflow(steps.size(), 0.0);
    double filled = 0.0;
    for (std::size_t n = 1; n <= capacity; ++n) {
      if (!(reached[n] > 0.0)) continue;
      double ends = 0.0;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const double next = reached[n] * steps[i].weight;
        if (n + steps[i].positions <= capacity) {
          reached[n + steps[i].positions] += next;
        } else {
          overflow[i] += next;
          ends += next;
        }
      }
      filled += ends * number(n);
    }
    const double now = filled / number(capacity);
    first = std::move(overflow);
    if (std::abs(now - share) < converged) return now;
    share = now;
  }
  return share;
}

}  // namespace foretrain
