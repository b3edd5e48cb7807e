// Attention without fusion, to be replayed: its products, and between them kernels that move as many bytes as mask and
// softmax do. Queries of the heads that share keys are rows of one product: no copies of shared keys are made.
#include "validate/cuda/math/attention_shape.hpp"

namespace foretrain::gpu {

namespace {

class StandardAttention final : public OperatorRunner {
 public:
  StandardAttention(const AttentionShape& shape, const RunnerSetting& setting) : shape_(shape), setting_(setting) {
    const std::int64_t rows = shape.heads / shape.kv_heads * shape.queries, keys = shape.keys, size = shape.head_dim;
    if (!shape.backward) {
      add_product(rows, keys, size, "transpose_b");
      if (shape.causal && !shape.fused_softmax) add_pass(1);
      add_pass(1);
      add_product(rows, size, keys, "");
      return;
    }
    add_product(keys, size, rows, "transpose_a");  // of the values
    add_product(rows, keys, size, "transpose_b");  // of the scores
    add_pass(2);
    add_product(rows, size, keys, "");             // of the queries
    add_product(keys, size, rows, "transpose_a");  // of the keys
  }

  void launch(cudaStream_t stream, int turn) override {
    for (const auto& part : parts_) part->launch(stream, turn);
  }
  [[nodiscard]] int kernels() const override { return static_cast<int>(parts_.size()); }

 private:
  void add_product(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& transposed) {
    OperatorSpec spec{"matmul",
                      {{"batch", std::to_string(shape_.batch * shape_.kv_heads)},
                       {"m", std::to_string(m)},
                       {"n", std::to_string(n)},
                       {"k", std::to_string(k)},
                       {"precision", shape_.precision}}};
    if (!transposed.empty()) spec.fields[transposed] = "true";
    parts_.push_back(make_matmul(spec, setting_));
  }
  /// Reads so many tensors as large as the scores, and writes one.
  void add_pass(std::int64_t reads) {
    const OperatorSpec number{"", {{"precision", shape_.precision}}};
    const std::int64_t scores = shape_.batch * shape_.heads * shape_.queries * shape_.keys * element_size(number);
    parts_.push_back(make_streaming(
        {"traffic",
         {{"read", std::to_string(reads * scores)}, {"written", std::to_string(scores)}, {"pattern", "elementwise"}}},
        setting_));
  }

  AttentionShape shape_;
  RunnerSetting setting_;
  std::vector<std::unique_ptr<OperatorRunner>> parts_;
};

}  // namespace

std::unique_ptr<OperatorRunner> make_standard_attention(const AttentionShape& shape, const RunnerSetting& setting) {
  return std::make_unique<StandardAttention>(shape, setting);
}

}  // namespace foretrain::gpu
