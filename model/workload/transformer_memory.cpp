#include "model/workload/transformer_memory.hpp"

#include <algorithm>
#include <utility>
#include <variant>

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

/// Widths of a block per token and rank.
struct BlockWidths {
  BlockWidths(const TransformerConfig& c, const BuildOptions& options)
      : q(static_cast<double>(c.heads * c.head_dim) / options.tensor),
        kv(std::max(static_cast<double>(c.kv_heads * c.head_dim) / options.tensor, static_cast<double>(c.head_dim))),
        f((c.experts > 1 ? static_cast<double>(c.experts_per_token) : 1.0) * static_cast<double>(c.ffn_hidden) /
          options.tensor) {}
  double q, kv, f;
};

// torchtitan's list (models/llama/parallelize_llama.py, _save_list): outputs of attention, of reduce-scatters and of
// the first, third, fifth, … matrix product are kept beside the block's input. Llama's products are q, k, v, output,
// gate, up, down; elsewhere q, k and v are one, gate and up are one. Run eagerly, what the list names is kept whether
// or not the backward pass reads it: llama's seventh product, whose result only enters a sum, is dropped by a compiler.
void keep_operators(Layer& layer, const TransformerConfig& c, const BuildOptions& options) {
  const RankShape rank(c, options);
  const BlockWidths w(c, options);
  const bool separate = c.family == TransformerFamily::llama;
  const double log_sums = static_cast<double>(c.heads) / options.tensor * 4.0;  // fp32, a row of scores each
  double kept = w.q;                                                            // attention's output
  if (separate) {
    kept += w.q + w.kv + w.f + (options.compiled ? 0.0 : rank.hidden);
  } else {
    kept += w.q + 2.0 * w.kv + (c.gated_ffn ? 2.0 : 1.0) * w.f;
  }
  const double scattered = options.tensor > 1 && options.sequence_parallel ? 2.0 : 0.0;  // after output and down
  layer.saved_operators = Bytes(rank.tokens * (rank.element * kept + log_sums) +
                                rank.norm_tokens * rank.hidden * rank.element * (1.0 + scattered));

  for (const Operator& op : layer.forward) {
    if (std::holds_alternative<Attention>(op.work) || op.name == "ffn down") continue;  // the last ones need no rerun
    Operator again = op;
    if (auto* product = std::get_if<Matmul>(&again.work)) {
      const bool odd = op.name == "query projection" || op.name == "value projection" || op.name == "ffn gate";
      if (odd) continue;                                                            // as kernels of their own
      const bool every_other = op.name == "qkv projection" || op.name == "ffn up";  // k of q, k, v; up of gate and up
      if (every_other && !separate) continue;
      if (op.name == "qkv projection") product->n = std::max<std::int64_t>(static_cast<std::int64_t>(w.kv), 1);
      if (op.name == "ffn up" && c.gated_ffn && options.kernels == KernelSet::fused) product->n /= 2;
    }
    layer.operators_recompute.push_back(std::move(again));
  }
}

}  // namespace

// Itemised as in arXiv 2205.05198, section 4.1: with 2-byte numbers and dropout, s·b·h·(10 + 24/t + 5·a·s/(h·t)); norms
// and their outputs are also divided under sequence parallelism.
void set_block_memory(Layer& layer, const TransformerConfig& c, const BuildOptions& options) {
  const RankShape rank(c, options);
  const double t = options.tensor;
  const double h = rank.hidden;
  const double e = rank.element;
  const double n = rank.tokens;
  const auto [q, kv, f] = BlockWidths(c, options);
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
  keep_operators(layer, c, options);
}

void set_embedding_memory(Layer& layer, const TransformerConfig& config, const BuildOptions& options) {
  const RankShape rank(config, options);
  layer.saved = Bytes(has_dropout(config.family) ? rank.norm_tokens * rank.hidden : 0.0);
  layer.saved_selective = layer.saved_operators = layer.saved_full = layer.saved;
  layer.output = Bytes(rank.element * rank.tokens * rank.hidden);
}

// Cross-entropy run eagerly widens the logits (4 bytes each), writes log-probabilities (4, kept) and in the backward
// pass two gradients of that size; the segment of the 2-byte logits is too small for any of these and stays reserved.
// Fused, it reads the logits and writes their gradient, both in the activations' format.
void set_head_memory(Layer& layer, std::int64_t rows, std::int64_t columns, const TransformerConfig& config,
                     const BuildOptions& options) {
  const RankShape rank(config, options);
  const double e = rank.element;
  const auto logits = static_cast<double>(rows) * static_cast<double>(columns);
  layer.saved = Bytes(rank.norm_tokens * rank.hidden * 2.0 * e);  // the norm's input and output
  layer.saved_selective = layer.saved_operators = layer.saved_full = layer.saved;
  layer.loss_kept = Bytes(logits * (options.fused_loss ? e : 4.0));
  layer.loss_buffers = Bytes(logits * (options.fused_loss ? 2.0 * e : 12.0 + (e < 4.0 ? e : 0.0)));
  layer.output = Bytes(0.0);
}

}  // namespace foretrain
