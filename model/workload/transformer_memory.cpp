#include "model/workload/transformer_memory.hpp"

#include <algorithm>

#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

struct RankShape {
  RankShape(const TransformerConfig& config, const BuildOptions& options)
      : element(bytes_per_element(storage_precision(options.precision)).value()),
        batch(static_cast<double>(options.pass ? options.pass->batch : options.micro_batch)),
        sequence(static_cast<double>(options.pass ? options.pass->length : tokens_of_sample(config))),
        tokens(static_cast<double>(
            (options.pass ? options.pass->tokens : options.micro_batch * tokens_of_sample(config)) / options.context)),
        norm_tokens(tokens / (options.sequence_parallel ? options.tensor : 1)),
        hidden(static_cast<double>(config.hidden)) {}

  double element;  // bytes
  double batch, sequence, tokens;
  double norm_tokens;  // of this rank's norms, dropout and residual additions: divided under sequence parallelism
  double hidden;
};

}  // namespace

// Itemised as in arXiv 2205.05198, section 4.1: with 2-byte numbers and dropout, s·b·h·(10 + 24/t + 5·a·s/(h·t)); norms
// and their outputs are also divided under sequence parallelism.
void set_block_memory(Layer& layer, const TransformerConfig& c, const BuildOptions& options) {
  const RankShape rank(c, options);
  const double t = options.tensor;
  const double h = rank.hidden;
  const double e = rank.element;
  const double n = rank.tokens;
  const double q = static_cast<double>(c.heads * c.head_dim) / t;
  const double kv = std::max(static_cast<double>(c.kv_heads * c.head_dim) / t, static_cast<double>(c.head_dim));
  const double routed = c.experts > 1 ? static_cast<double>(c.experts_per_token) : 1.0;
  const double f = routed * static_cast<double>(c.ffn_hidden) / t;
  const double mask = has_dropout(c.family) ? 1.0 : 0.0;

  // Two norm inputs, the inputs of the two column-parallel products, two dropout masks: not divided by t alone.
  const double replicated = rank.norm_tokens * h * (4.0 * e + 2.0 * mask);
  // q, k, v and the attention's output; both sides of the activation function (a gated one has two inputs).
  const double divided = n * e * (2.0 * q + 2.0 * kv + (c.gated_ffn ? 3.0 : 2.0) * f);
  double scores = 0.0;  // softmax output, dropout mask and dropout output, per head and pair of tokens
  if (options.attention == AttentionKind::standard) {
    scores = rank.batch * static_cast<double>(c.heads) / t * rank.sequence * rank.sequence / options.context *
             (2.0 * e + mask);
  } else {
    scores = n * static_cast<double>(c.heads) / t * 4.0;  // the log-sum-exp of each row
  }
  layer.saved = Bytes(replicated + divided + scores);
  layer.saved_selective = Bytes(replicated + divided);
  layer.saved_full = Bytes(rank.norm_tokens * h * e);
  layer.output = Bytes(n * h * e);
  layer.workspace = Bytes(n * e * std::max((c.gated_ffn ? 3.0 : 2.0) * f, 2.0 * h));
}

void set_embedding_memory(Layer& layer, const TransformerConfig& config, const BuildOptions& options) {
  const RankShape rank(config, options);
  layer.saved = Bytes(has_dropout(config.family) ? rank.norm_tokens * rank.hidden : 0.0);
  layer.saved_selective = layer.saved;
  layer.saved_full = layer.saved;
  layer.output = Bytes(rank.element * rank.tokens * rank.hidden);
}

void set_head_memory(Layer& layer, std::int64_t rows, std::int64_t columns, const TransformerConfig& config,
                     const BuildOptions& options) {
  const RankShape rank(config, options);
  const auto logits = static_cast<double>(rows * columns);
  layer.saved = Bytes(logits * (4.0 + rank.element) + rank.norm_tokens * rank.hidden * 4.0);
  layer.saved_selective = layer.saved;
  layer.saved_full = layer.saved;
  layer.workspace = Bytes(logits * 4.0);
  layer.output = Bytes(0.0);
}

}  // namespace foretrain
