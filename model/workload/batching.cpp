#include "model/workload/batching.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"

namespace foretrain {

double SampleMix::tokens() const {
  double sum = 0.0;
  for (const Sample& sample : samples) sum += sample.weight * sample.tokens;
  return sum;
}

double SampleMix::images() const {
  double sum = 0.0;
  for (const Sample& sample : samples) sum += sample.weight * sample.images;
  return sum;
}

std::vector<WeightedValue> SampleMix::lengths() const {
  std::vector<WeightedValue> values;
  for (const Sample& sample : samples) values.push_back({sample.tokens, sample.weight});
  return normalised(std::move(values));
}

SampleMix mix_of(const DataShape& data, double visual_tokens, std::int64_t limit) {
  SampleMix mix;
  mix.limit = number(limit);
  const std::vector<WeightedValue> text = values_of(data.text);
  const std::vector<WeightedValue> images =
      visual_tokens > 0.0 ? whole_values_of(data.images) : std::vector<WeightedValue>{{0.0, 1.0}};
  for (const WeightedValue& count : images) {
    for (const WeightedValue& words : text) {
      const double tokens = std::max(std::round(count.value * visual_tokens + words.value), 1.0);
      const double weight = count.weight * words.weight;
      mix.samples.push_back({std::min(tokens, mix.limit), count.value, weight});
    }
  }
  std::stable_sort(mix.samples.begin(), mix.samples.end(),
                   [](const Sample& a, const Sample& b) { return a.tokens < b.tokens; });
  return mix;
}

std::vector<SampleMix> length_classes(const SampleMix& mix, const Batching& batching) {
  if (batching.kind != Batching::Kind::bucketing) return {mix};
  std::vector<SampleMix> classes;
  for (int b = 0; b < batching.buckets; ++b) {
    const double from = number(b) / batching.buckets, to = (b + 1.0) / batching.buckets;
    classes.push_back({between_quantiles(mix.samples, from, to), mix.limit});
  }
  return classes;
}

PassTokens pass_tokens(double tokens, double count, double squares) {
  const double batch = std::max(std::round(count), 1.0);
  const double length = std::max(std::round(std::sqrt(squares / batch)), 1.0);
  return {static_cast<std::int64_t>(std::max(std::round(tokens), 1.0)), static_cast<std::int64_t>(batch),
          static_cast<std::int64_t>(length)};
}

BatchShape batch_shape(const SampleMix& mix, const Batching& batching, std::int64_t micro_batch, bool whole_rows) {
  const auto m = number(micro_batch);
  const std::vector<WeightedValue> lengths = mix.lengths();
  BatchShape shape;
  shape.tokens_per_sample = mix.tokens();
  shape.images_per_sample = mix.images();
  shape.mean.images = m * shape.images_per_sample;

  if (batching.kind == Batching::Kind::packing) {
    const auto row = number(batching.length);
    const double tokens = m * shape.tokens_per_sample / packed_share(mix, batching.length);
    const double rows = tokens / row;
    const double squares = m * moment(lengths, 2);
    const PassTokens all_pairs = pass_tokens(tokens, rows, rows * row * row);
    shape.mean.language =
        whole_rows ? all_pairs
                   : pass_tokens(tokens, m * shape.tokens_per_sample / squares * m * shape.tokens_per_sample, squares);
    shape.largest.language = all_pairs;
    for (const Sample& sample : mix.samples) {
      shape.largest.images = std::max(shape.largest.images, tokens * sample.images / sample.tokens);
    }
  } else if (batching.kind == Batching::Kind::unpadded) {
    const double most = lengths.back().value;
    shape.mean.language = pass_tokens(m * shape.tokens_per_sample, m, m * moment(lengths, 2));
    shape.largest.language = pass_tokens(m * most, m, m * most * most);
    for (const Sample& sample : mix.samples) shape.largest.images = std::max(shape.largest.images, m * sample.images);
  } else {
    double longest = 0.0;  // E[longest of the micro-batch], and of its square
    double longest_square = 0.0;
    const std::vector<SampleMix> classes = length_classes(mix, batching);
    for (const SampleMix& part : classes) {
      longest += largest_moment(part.lengths(), m, 1) / number(classes.size());
      longest_square += largest_moment(part.lengths(), m, 2) / number(classes.size());
    }
    if (batching.kind == Batching::Kind::maximum) {
      longest = mix.limit;
      longest_square = mix.limit * mix.limit;
    }
    const double most = batching.kind == Batching::Kind::maximum ? mix.limit : lengths.back().value;
    shape.mean.language = pass_tokens(m * longest, m, m * longest_square);
    shape.largest.language = pass_tokens(m * most, m, m * most * most);
    for (const Sample& sample : mix.samples) shape.largest.images = std::max(shape.largest.images, m * sample.images);
  }
  shape.computed_per_sample = number(shape.mean.language.tokens) / m;
  return shape;
}

}  // namespace foretrain
