// Attention without fusion, to be replayed: between its products, mask and softmax are kernels that move as many bytes,
// and leave scores as they are. Queries of the heads that share keys lie one behind the other, so that they are rows of
// one product: no copies of shared keys are made.
#include <cmath>

#include "validate/cuda/math/attention_shape.hpp"
#include "validate/cuda/math/matmul.hpp"
#include "validate/cuda/math/streaming.hpp"

namespace foretrain::gpu {

namespace {

class StandardAttention final : public OperatorRunner {
 public:
  StandardAttention(const AttentionShape& shape, const RunnerSetting& setting);

  void launch(cudaStream_t stream, int turn) override {
    const Tensors& tensors = sets_[static_cast<std::size_t>(turn) % sets_.size()];
    shape_.backward ? backward(tensors, stream) : forward(tensors, stream);
  }
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] int operand_sets() const override { return static_cast<int>(sets_.size()); }
  [[nodiscard]] int kernels() const override {
    if (shape_.backward) return 5;
    return shape_.causal && !shape_.fused_softmax ? 4 : 3;
  }

 private:
  struct Tensors {
    void *q, *k, *v, *out, *scores, *d_out, *dq, *dk, *dv, *score_gradients;
  };

  void forward(const Tensors& t, cudaStream_t stream);
  void backward(const Tensors& t, cudaStream_t stream);
  /// Reads one or two tensors as large as the scores, and writes the first.
  void pass_over(void* tensor, void* other, cudaStream_t stream) const {
    const auto words = static_cast<std::int64_t>(by_keys_.c().bytes() / 16);
    stream_words({tensor, other, tensor}, {words, other == nullptr ? 0 : words, words}, false, stream);
  }

  AttentionShape shape_;
  Format format_;
  std::int64_t rows_;  ///< queries of one of a batch's products: those of all heads that share keys
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
      rows_(shape.heads / shape.kv_heads * shape.queries),
      scale_(1.0F / std::sqrt(static_cast<float>(shape.head_dim))),
      by_keys_(with_transposed(product(shape, rows_, shape.keys, shape.head_dim), false, true),
               {setting.memory, no_operands}),
      by_values_(product(shape, rows_, shape.head_dim, shape.keys), {setting.memory, no_operands}) {
  if (size_of(format_) == 1 || format_ == Format::fp64) {
    throw GpuError(Fault::unsupported, "unfused attention runs in fp32, tf32, fp16 and bf16");
  }
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
    t.scores = take(of_scores, shape.backward ? Use::read : Use::written);
    if (shape.backward) {
      t.d_out = take(of_queries, Use::read);
      t.dq = take(of_queries, Use::written);
      t.dk = take(of_keys, Use::written);
      t.dv = take(of_keys, Use::written);
      t.score_gradients = take(of_scores, Use::written);
    }
    sets_.push_back(t);
  }
}

std::size_t StandardAttention::bytes() const {
  const std::size_t of_queries = by_values_.c().bytes(), of_keys = by_values_.b().bytes();
  const std::size_t of_scores = by_keys_.c().bytes();
  return shape_.backward ? 4 * of_queries + 4 * of_keys + 2 * of_scores : 2 * of_queries + 2 * of_keys + of_scores;
}

void StandardAttention::forward(const Tensors& t, cudaStream_t stream) {
  by_keys_.launch_on(stream, t.q, t.k, t.scores, scale_);
  if (shape_.causal && !shape_.fused_softmax) pass_over(t.scores, nullptr, stream);
  pass_over(t.scores, nullptr, stream);
  by_values_.launch_on(stream, t.scores, t.v, t.out, 1.0F);
}

void StandardAttention::backward(const Tensors& t, cudaStream_t stream) {
  transposed_->launch_on(stream, t.scores, t.d_out, t.dv, 1.0F);
  by_keys_.launch_on(stream, t.d_out, t.v, t.score_gradients, 1.0F);
  pass_over(t.score_gradients, t.scores, stream);
  by_values_.launch_on(stream, t.score_gradients, t.k, t.dq, scale_);
  transposed_->launch_on(stream, t.score_gradients, t.q, t.dk, scale_);
}

}  // namespace

std::unique_ptr<OperatorRunner> make_standard_attention(const AttentionShape& shape, const RunnerSetting& setting) {
  return std::make_unique<StandardAttention>(shape, setting);
}

}  // namespace foretrain::gpu
