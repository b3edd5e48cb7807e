// Attention without fusion. Queries of the heads that share keys lie one behind the other, so that they are rows of one
// product: no copies of shared keys are made.
#include <cmath>

#include "validate/cuda/math/attention_reference.hpp"
#include "validate/cuda/math/matmul.hpp"
#include "validate/cuda/math/probe.hpp"
#include "validate/cuda/math/streaming_kernels.hpp"

namespace foretrain::gpu {

namespace {

class StandardAttention final : public OperatorRunner {
 public:
  StandardAttention(const AttentionShape& shape, const RunnerSetting& setting);

  void launch(cudaStream_t stream, int turn) override {
    const Tensors& tensors = sets_[static_cast<std::size_t>(turn) % sets_.size()];
    shape_.backward ? backward(tensors, stream) : forward(tensors, stream);
  }
  void verify(cudaStream_t stream) override {
    launch(stream, 0);
    if (shape_.backward) return verify_backward(stream);
    const Tensors& t = sets_.front();
    verify_attention(shape_, {t.q, t.k, t.v, t.out}, stream);
  }
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] int operand_sets() const override { return static_cast<int>(sets_.size()); }
  [[nodiscard]] int kernels() const override {
    if (shape_.backward) return 5;
    return shape_.causal && !shape_.fused_softmax ? 4 : 3;
  }
  [[nodiscard]] std::map<std::string, std::string> parameters() const override { return {{"engine", "cublaslt"}}; }

 private:
  /// Scores hold probabilities after the forward pass; score_gradients those of probabilities, then of scores.
  struct Tensors {
    void *q, *k, *v, *out, *scores, *d_out, *dq, *dk, *dv, *score_gradients;
  };

  void forward(const Tensors& t, cudaStream_t stream);
  void backward(const Tensors& t, cudaStream_t stream);
  void verify_backward(cudaStream_t stream) const;
  [[nodiscard]] std::vector<double> line(const void* tensor, std::int64_t start, std::int64_t step, std::int64_t count,
                                         cudaStream_t stream) const {
    return read_elements(format_, tensor, start, step, count, stream);
  }

  AttentionShape shape_;
  Format format_;
  std::int64_t groups_;  ///< products of a batch: sequences times heads of keys
  std::int64_t rows_;    ///< queries of one of them
  float scale_;
  MatmulRunner by_keys_, by_values_;  ///< [rows, head_dim] · [keys, head_dim]ᵀ, [rows, keys] · [keys, head_dim]
  std::unique_ptr<MatmulRunner> transposed_;  ///< [rows, keys]ᵀ · [rows, head_dim], going back
  std::vector<Tensors> sets_;
};

MatmulShape product(const AttentionShape& s, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.batch = s.batch * s.kv_heads, .m = m, .n = n, .k = k, .precision = s.precision};
}

MatmulShape with_transposed(MatmulShape shape, bool a, bool b) {
  shape.transpose_a = a;
  shape.transpose_b = b;
  return shape;
}

StandardAttention::StandardAttention(const AttentionShape& shape, const RunnerSetting& setting)
    : shape_(shape),
      format_(format_of(shape.precision)),
      groups_(shape.batch * shape.kv_heads),
      rows_(shape.heads / shape.kv_heads * shape.queries),
      scale_(1.0F / std::sqrt(static_cast<float>(shape.head_dim))),
      by_keys_(with_transposed(product(shape, rows_, shape.keys, shape.head_dim), false, true),
               {setting.memory, no_operands}),
      by_values_(product(shape, rows_, shape.head_dim, shape.keys), {setting.memory, no_operands}) {
  if (size_of(format_) == 1 || format_ == Format::fp64) {
    throw GpuError(Fault::unsupported, "unfused attention runs in fp32, tf32, fp16 and bf16");
  }
  if (groups_ * rows_ > 2147483647) throw GpuError(Fault::unsupported, "more rows of scores than a grid has blocks");
  if (shape.backward) {
    transposed_ =
        std::make_unique<MatmulRunner>(with_transposed(product(shape, shape.keys, shape.head_dim, rows_), true, false),
                                       RunnerSetting{setting.memory, no_operands});
  }
  setting.memory.begin_operator();
  const std::size_t of_queries = by_values_.c().bytes(), of_keys = by_values_.b().bytes();
  const std::size_t of_scores = by_keys_.c().bytes();
  const int sets = gpu::operand_sets(setting.rotation, bytes());
  for (int i = 0; i < sets; ++i) {
    const auto take = [&](std::size_t size, Use use) { return setting.memory.take(size, format_, use); };
    Tensors t{};
    t.q = take(of_queries, Use::read);
    t.k = take(of_keys, Use::read);
    t.v = take(of_keys, Use::read);
    t.out = take(of_queries, Use::written);
    t.scores = take(of_scores, shape.backward ? Use::kept : Use::written);
    if (shape.backward) {
      t.d_out = take(of_queries, Use::read);
      t.dq = take(of_queries, Use::written);
      t.dk = take(of_keys, Use::written);
      t.dv = take(of_keys, Use::written);
      t.score_gradients = take(of_scores, Use::written);
    }
    sets_.push_back(t);
  }
  if (!shape.backward) return;
  GPU_CHECK(cudaDeviceSynchronize());  // the memory may fill on a stream of its own
  const Stream stream;
  for (const Tensors& tensors : sets_) forward(tensors, stream.get());  // probabilities to go back from
  stream.synchronize();
}

std::size_t StandardAttention::bytes() const {
  const std::size_t of_queries = by_values_.c().bytes(), of_keys = by_values_.b().bytes();
  const std::size_t of_scores = by_keys_.c().bytes();
  return shape_.backward ? 4 * of_queries + 4 * of_keys + 2 * of_scores : 2 * of_queries + 2 * of_keys + of_scores;
}

void StandardAttention::forward(const Tensors& t, cudaStream_t stream) {
  const std::int64_t all = groups_ * rows_, keys = shape_.keys;
  by_keys_.launch_on(stream, t.q, t.k, t.scores, scale_);
  if (shape_.causal && !shape_.fused_softmax) mask_scores(format_, t.scores, all, keys, shape_.queries, stream);
  if (shape_.causal && shape_.fused_softmax) {
    masked_softmax_forward(format_, t.scores, t.scores, all, keys, shape_.queries, stream);
  } else {
    softmax_forward(format_, t.scores, t.scores, all, keys, stream);
  }
  by_values_.launch_on(stream, t.scores, t.v, t.out, 1.0F);
}

void StandardAttention::backward(const Tensors& t, cudaStream_t stream) {
  transposed_->launch_on(stream, t.scores, t.d_out, t.dv, 1.0F);
  by_keys_.launch_on(stream, t.d_out, t.v, t.score_gradients, 1.0F);
  softmax_backward(format_, t.scores, t.score_gradients, t.score_gradients, groups_ * rows_, shape_.keys, stream);
  by_values_.launch_on(stream, t.score_gradients, t.k, t.dq, scale_);
  transposed_->launch_on(stream, t.score_gradients, t.q, t.dk, scale_);
}

void StandardAttention::verify_backward(cudaStream_t stream) const {
  const Tensors& t = sets_.front();
  const std::int64_t d = shape_.head_dim, keys = shape_.keys;
  const auto groups = samples_below(groups_, 2), rows = samples_below(rows_, 2), columns = samples_below(d, 2);
  const auto some_keys = samples_below(keys, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t row = groups[i] * rows_ + rows[i], key_start = groups[i] * keys * d;
    const std::int64_t score_start = groups[i] * rows_ * keys;
    const auto probabilities = line(t.scores, row * keys, 1, keys, stream);
    const auto gradients = line(t.score_gradients, row * keys, 1, keys, stream);
    const auto d_out = line(t.d_out, row * d, 1, d, stream);
    const auto v = line(t.v, key_start, 1, keys * d, stream);
    std::vector<double> of_probabilities;
    double mean = 0.0;
    for (std::size_t j = 0; j < probabilities.size(); ++j) {
      double sum = 0.0;
      for (std::size_t c = 0; c < d_out.size(); ++c) sum += d_out[c] * v[j * d_out.size() + c];
      of_probabilities.push_back(sum);
      mean += probabilities[j] * sum;
    }
    const auto key = static_cast<std::size_t>(some_keys[i]);
    const double score_gradient = probabilities[key] * (of_probabilities[key] - mean);
    expect_close("gradient of a score", gradients[key], score_gradient,
                 probabilities[key] * (std::abs(of_probabilities[key]) + std::abs(mean) + 1.0) *
                         (8.0 * rounding_of(format_) + 2e-3) +
                     1e-6);
    // The products, from what lies in memory.
    const auto expect = [&](const char* what, const std::vector<double>& a, const std::vector<double>& b, double factor,
                            const void* result, std::int64_t place) {
      SumOfProducts sum;
      for (std::size_t j = 0; j < a.size(); ++j) sum.add(factor * a[j], b[j]);
      expect_close(what, read_element(format_, result, place, stream), sum.sum, sum.tolerance(format_));
    };
    const std::int64_t query_start = groups[i] * rows_ * d + columns[i],
                       at_key = key_start + some_keys[i] * d + columns[i];
    expect("gradient of a query", gradients, line(t.k, key_start + columns[i], d, keys, stream), scale_, t.dq,
           row * d + columns[i]);
    expect("gradient of a key", line(t.score_gradients, score_start + some_keys[i], keys, rows_, stream),
           line(t.q, query_start, d, rows_, stream), scale_, t.dk, at_key);
    expect("gradient of a value", line(t.scores, score_start + some_keys[i], keys, rows_, stream),
           line(t.d_out, query_start, d, rows_, stream), 1.0, t.dv, at_key);
  }
}

}  // namespace

std::unique_ptr<OperatorRunner> make_standard_attention(const AttentionShape& shape, const RunnerSetting& setting) {
  return std::make_unique<StandardAttention>(shape, setting);
}

}  // namespace foretrain::gpu
