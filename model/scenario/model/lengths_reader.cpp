#include "model/scenario/model/lengths_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/statistics.hpp"

namespace foretrain {
namespace {

constexpr IntegerRange length_range{1, 100'000'000};
constexpr IntegerRange count_range{1, 100'000};

using keys::LengthsDistribution;

std::vector<std::int64_t> read_quantiles(const Field& field) {
  const MappingReader keys = field.mapping(keys::lengths);
  const auto kind = keys["distribution"].choice<LengthsDistribution>();
  const std::int64_t count = keys["count"].integer(count_range);
  const std::int64_t shortest = keys.integer_or("shortest", 1, length_range);
  const bool uniform = kind == LengthsDistribution::uniform, exponential = kind == LengthsDistribution::exponential;
  const std::int64_t longest =
      uniform ? keys["longest"].integer(length_range) : keys.integer_or("longest", length_range.maximum, length_range);
  if (longest < shortest) keys.fail("longest", "less than the shortest", fmt::format("at least {}", shortest));
  if (uniform && keys.has("mean")) keys.fail("mean", "uniform lengths have none of their own", "shortest and longest");
  if ((uniform || exponential) && keys.has("spread")) {
    keys.fail("spread", "these lengths have none of their own", "distribution: normal or lognormal");
  }
  const double mean = uniform ? 0.0 : keys["mean"].number(Zero::refused);
  const double spread = uniform || exponential ? 0.0 : keys["spread"].number();
  // A lognormal of this mean and standard deviation has these parameters.
  const double log_variance = uniform ? 0.0 : std::log1p(spread * spread / (mean * mean));
  const auto quantile = [&](double p) {
    switch (kind) {
      case LengthsDistribution::uniform:
        return static_cast<double>(shortest) + p * static_cast<double>(longest - shortest);
      case LengthsDistribution::normal:
        return mean + spread * normal_quantile(p);
      case LengthsDistribution::lognormal:
        return mean * std::exp(std::sqrt(log_variance) * normal_quantile(p) - 0.5 * log_variance);
      case LengthsDistribution::exponential:
        break;
    }
    return -mean * std::log1p(-p);
  };
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    const double clamped = std::clamp(quantile(p), static_cast<double>(shortest), static_cast<double>(longest));
    lengths.push_back(std::llround(clamped));
  }
  return lengths;
}

}  // namespace

std::vector<std::int64_t> read_sequence_lengths(const Field& field) {
  if (field.is_mapping()) return read_quantiles(field);
  std::vector<std::int64_t> lengths;
  for (const Field& length : field.list_or_one()) lengths.push_back(length.integer(length_range));
  if (lengths.empty()) field.fail("an empty list", "lengths of sequences, as [512, 1024]");
  return lengths;
}

}  // namespace foretrain
