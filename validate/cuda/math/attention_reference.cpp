#include "validate/cuda/math/attention_reference.hpp"

#include <cmath>

#include "validate/cuda/math/probe.hpp"

namespace foretrain::gpu {

namespace {

using Numbers = std::vector<double>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The heads that share keys, with their queries one behind the other, and places in them.
struct Groups {
  std::int64_t count, rows;  ///< groups; queries of each
  double scale;
};
Groups groups_of(const AttentionShape& s) {
  return {s.batch * s.kv_heads, s.heads / s.kv_heads * s.queries, 1.0 / std::sqrt(static_cast<double>(s.head_dim))};
}

std::int64_t keys_seen(const AttentionShape& s, std::int64_t row) {
  return s.causal ? s.keys - s.queries + row % s.queries + 1 : s.keys;
}

double dot(const Numbers& a, const Numbers& b, std::int64_t b_row) {
  double sum = 0.0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[index(b_row) * a.size() + c];
  return sum;
}

/// Probabilities of the keys that a query sees. Scores are of the order of 1: no maximum needs to be taken off.
Numbers probabilities(const Numbers& query, const Numbers& keys, std::int64_t seen, double scale) {
  Numbers weights;
  double sum = 0.0;
  for (std::int64_t j = 0; j < seen; ++j) {
    weights.push_back(std::exp(dot(query, keys, j) * scale));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Reads whole rows of head_dim numbers.
class Reader {
 public:
  Reader(const AttentionShape& shape, cudaStream_t stream)
      : format_(format_of(shape.precision)), width_(shape.head_dim), stream_(stream) {}
  [[nodiscard]] Numbers rows(const void* tensor, std::int64_t first, std::int64_t count) const {
    return read_elements(format_, tensor, first * width_, 1, count * width_, stream_);
  }
  [[nodiscard]] double element(const void* tensor, std::int64_t row, std::int64_t column) const {
    return read_element(format_, tensor, row * width_ + column, stream_);
  }
  [[nodiscard]] Format format() const { return format_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }

 private:
  Format format_;
  std::int64_t width_;
  cudaStream_t stream_;
};

void verify_query_gradient(const AttentionShape& s, const AttentionTensors& t, const AttentionGradients& g,
                           const Reader& read, std::int64_t group, std::int64_t row, std::int64_t column) {
  const Groups groups = groups_of(s);
  const std::int64_t query = group * groups.rows + row;
  const Numbers d_out = read.rows(g.d_out, query, 1), out = read.rows(t.out, query, 1);
  const Numbers keys = read.rows(t.k, group * s.keys, s.keys), values = read.rows(t.v, group * s.keys, s.keys);
  const Numbers weights = probabilities(read.rows(t.q, query, 1), keys, keys_seen(s, row), groups.scale);
  const double mean = dot(d_out, out, 0);
  SumOfProducts sum;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    const double score_gradient = weights[j] * (dot(d_out, values, static_cast<std::int64_t>(j)) - mean);
    sum.add(groups.scale * score_gradient, keys[j * index(s.head_dim) + index(column)]);
  }
  expect_close("gradient of a query", read.element(g.dq, query, column), sum.sum,
               sum.tolerance(read.format()) + 0.01 * std::sqrt(sum.squares));
}

void verify_key_gradients(const AttentionShape& s, const AttentionTensors& t, const AttentionGradients& g,
                          const Reader& read, std::int64_t group, std::int64_t key, std::int64_t column) {
  const Groups groups = groups_of(s);
  const std::int64_t first = group * groups.rows;
  const Numbers q = read.rows(t.q, first, groups.rows), d_out = read.rows(g.d_out, first, groups.rows);
  const Numbers out = read.rows(t.out, first, groups.rows);
  const Numbers logarithms = read_elements(Format::fp32, g.logarithms, first, 1, groups.rows, read.stream());
  const Numbers k = read.rows(t.k, group * s.keys + key, 1), v = read.rows(t.v, group * s.keys + key, 1);
  SumOfProducts of_key, of_value;
  const std::size_t width = index(s.head_dim);
  for (std::int64_t row = 0; row < groups.rows; ++row) {
    if (key >= keys_seen(s, row)) continue;
    const double weight = std::exp(dot(k, q, row) * groups.scale - logarithms[index(row)]);
    double mean = 0.0;
    for (std::size_t c = 0; c < width; ++c) mean += d_out[index(row) * width + c] * out[index(row) * width + c];
    const double score_gradient = weight * (dot(v, d_out, row) - mean);
    of_key.add(groups.scale * score_gradient, q[index(row) * width + index(column)]);
    of_value.add(weight, d_out[index(row) * width + index(column)]);
  }
  const auto tolerance = [&](const SumOfProducts& sum) {
    return sum.tolerance(read.format()) + 0.01 * std::sqrt(sum.squares);
  };
  expect_close("gradient of a key", read.element(g.dk, group * s.keys + key, column), of_key.sum, tolerance(of_key));
  expect_close("gradient of a value", read.element(g.dv, group * s.keys + key, column), of_value.sum,
               tolerance(of_value));
}

}  // namespace

void verify_attention(const AttentionShape& shape, const AttentionTensors& tensors, cudaStream_t stream) {
  const Groups groups = groups_of(shape);
  const Reader read(shape, stream);
  constexpr int count = 3;
  const auto group = samples_below(groups.count, count), row = samples_below(groups.rows, count);
  const auto column = samples_below(shape.head_dim, count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t query = group[i] * groups.rows + row[i];
    const Numbers keys = read.rows(tensors.k, group[i] * shape.keys, shape.keys);
    const Numbers values = read.rows(tensors.v, group[i] * shape.keys, shape.keys);
    const Numbers weights = probabilities(read.rows(tensors.q, query, 1), keys, keys_seen(shape, row[i]), groups.scale);
    SumOfProducts out;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      out.add(weights[j], values[j * index(shape.head_dim) + index(column[i])]);
    }
    expect_close("attention", read.element(tensors.out, query, column[i]), out.sum, out.tolerance(read.format()));
  }
}

void verify_attention_gradients(const AttentionShape& shape, const AttentionTensors& tensors,
                                const AttentionGradients& gradients, cudaStream_t stream) {
  const Groups groups = groups_of(shape);
  const Reader read(shape, stream);
  constexpr int count = 2;
  constexpr std::int64_t most_numbers = std::int64_t{1} << 23;
  const auto group = samples_below(groups.count, count), row = samples_below(groups.rows, count);
  const auto key = samples_below(shape.keys, count), column = samples_below(shape.head_dim, count);
  for (std::size_t i = 0; i < count; ++i) {
    verify_query_gradient(shape, tensors, gradients, read, group[i], row[i], column[i]);
    if (groups.rows * shape.head_dim > most_numbers) continue;
    verify_key_gradients(shape, tensors, gradients, read, group[i], key[i], column[i]);
  }
}

}  // namespace foretrain::gpu
