// Memory that the layers of a transformer keep for their backward passes, and need while they run; of one rank.

#include <algorithm>
#include <utility>
#include <variant>

#include "model/base/number.hpp"
#include "model/workload/block_builder.hpp"

namespace foretrain {

namespace {

/// Widths of a block per token and rank.
struct BlockWidths {
  BlockWidths(const TransformerConfig& c, const BuildOptions& options)
      : q(number(c.heads) * number(c.head_dim) / options.tensor),
        kv(std::max(number(c.kv_heads) * number(c.head_dim) / options.tensor, number(c.head_dim))),
        routed(c.experts > 1 ? number(c.experts_per_token) * c.expert_load() : 0.0),
        f((c.experts > 1 ? routed + number(c.shared_experts) : 1.0) * number(c.ffn_hidden) / options.tensor) {}
  double q, kv;
  double routed;  ///< copies of a token that go to experts
  double f;
};

}  // namespace

// torchtitan's list (models/llama/parallelize_llama.py, _save_list): outputs of attention, of reduce-scatters and of
// the first, third, fifth, … GEMM are kept beside the block's input. Llama's products are q, k, v, output,
// gate, up, down; elsewhere q, k and v are one, gate and up are one. Run eagerly, what the list names is kept whether
// or not the backward pass reads it: llama's seventh product, whose result only enters a sum, is dropped by a compiler.
// Experts' grouped products are not in the list and run again.
void BlockBuilder::keep_operators(Layer& layer) const {
  const auto& c = config_;
  const BlockWidths w(c, options_);
  const auto hidden = number(c.hidden);
  const bool separate = c.family == TransformerFamily::llama;
  const double log_sums = number(c.heads) / options_.tensor * 4.0;  // fp32, a row of scores each
  const double f = w.f - w.routed * number(c.ffn_hidden) / options_.tensor;
  double kept = w.q;  // attention's output
  if (c.source > 0) kept += 2.0 * (w.q + w.kv * number(c.source) / number(sequence_));
  if (separate) {
    kept += w.q + w.kv + f + (options_.compiled ? 0.0 : hidden);
  } else {
    kept += w.q + 2.0 * w.kv + (c.gated_ffn ? 2.0 : 1.0) * f;
  }
  const double scattered = options_.tensor > 1 && options_.sequence_parallel ? 2.0 : 0.0;  // after output and down
  const double e = element_.value();
  Recomputation::Way& way = layer.recomputation[Recompute::selective_operators];
  way.kept = Bytes(number(tokens_) * (e * kept + log_sums) + norm_tokens() * hidden * e * (1.0 + scattered));

  for (const Operator& op : layer.forward) {
    // The last ones need no rerun.
    if (std::holds_alternative<Attention>(op.work) || op.role == OperatorRole::down) continue;
    Operator again = op;
    if (auto* product = std::get_if<Matmul>(&again.work); product != nullptr && !product->grouped) {
      const bool odd =
          op.role == OperatorRole::query || op.role == OperatorRole::value || op.role == OperatorRole::gate;
      if (odd) continue;  // as kernels of their own
      const bool joined = op.role == OperatorRole::joined_qkv;
      const bool every_other = joined || op.role == OperatorRole::up;  // k of q, k, v; up of gate and up
      if (every_other && !separate) continue;
      if (joined) product->n = std::max<std::int64_t>(static_cast<std::int64_t>(w.kv), 1);
      if (op.role == OperatorRole::up && c.gated_ffn && options_.code.fused_qkv) product->n /= 2;
    }
    way.again.push_back(std::move(again));
  }
}

// Copies of its input that a product keeps for the gradient of its weights. Fused modules cast it themselves and keep
// what they cast (Transformer Engine, module/linear.py and layernorm_linear.py: saved_inputmat is the quantised input,
// of which one layout is left); where operations are written out, autograd keeps what the cast read.
double BlockBuilder::kept_operand() const {
  const bool narrow = weights_ && options_.code.casts_in_modules(options_.precision);
  return narrow ? std::min(bytes_per_element(options_.precision), element_).value() : element_.value();
}

// Outputs of norms and of activation functions, and what comes up from latent vectors, which are kept instead. What
// goes to experts and into the activation function is kept as short as operands are (DeepSeek-AI 2024, arXiv
// 2412.19437, sections 3.2.3 and 3.3.3).
void BlockBuilder::drop_modules(Layer& layer) const {
  const auto& c = config_;
  const BlockWidths w(c, options_);
  const double e = element_.value(), operand = kept_operand();
  const double shortest = std::min(bytes_per_element(options_.precision).value(), e);
  double widths = operand * w.f + (e - shortest) * (c.gated_ffn ? 2.0 : 1.0) * w.f +
                  (operand - shortest) * w.routed * number(c.hidden);
  if (c.latent()) widths += e * (w.q + 2.0 * w.kv - number(c.q_lora_rank + c.kv_lora_rank + c.rope_head_dim));
  Recomputation::Way& way = layer.recomputation[Recompute::selective_modules];
  way.kept = layer.kept() - Bytes(number(tokens_) * widths + halves() * norm_tokens() * number(c.hidden) * operand);

  for (const Operator& op : layer.forward) {
    using enum OperatorRole;
    if (op.role == out_of_latent || op.role == norm || op.role == activation) way.again.push_back(op);
  }
}

// Itemised as in arXiv 2205.05198, section 4.1: with 2-byte numbers and dropout, s·b·h·(10 + 24/t + 5·a·s/(h·t)); norms
// and their outputs are also divided under sequence parallelism.
void BlockBuilder::set_block_memory(Layer& layer) const {
  const auto& c = config_;
  const double t = options_.tensor, h = number(c.hidden), e = element_.value(), n = number(tokens_);
  const auto [q, kv, routed, f] = BlockWidths(c, options_);
  const double mask = has_dropout(c.family) ? 1.0 : 0.0;

  // Of each half, the norm's input, the input of the column-parallel product and a dropout mask: not divided by t
  // alone. Inputs may be kept as they were gathered from the other ranks (autograd saves what a product read), or the
  // rank's own part alone, and gathered again.
  const double operand = kept_operand();
  // Written out operation by operation, a norm of squares keeps its input in fp32 and what it scaled before the weight
  // (torchtitan, models/norms.py and Hugging Face's LlamaRMSNorm: x.float(), then type_as), PyTorch's layer norm its
  // input as the stream passes it. A gated activation keeps the gate's activation beside both halves and the product.
  // A compiler keeps what a fused kernel keeps.
  const auto written_out = [&](Fusion one) { return !fuses(one) && !options_.compiled; };
  const double normed = !written_out(Fusion::norm) ? e : (c.has_rms_norm() ? 4.0 : 0.0) + stream_.value();
  const double inner = !c.gated_ffn ? 1.0 : written_out(Fusion::activation) ? 3.0 : 2.0;
  const double gathered = options_.code.keep_gathered_inputs ? halves() * (n - norm_tokens()) * h * operand : 0.0;
  const double replicated = norm_tokens() * h * halves() * (normed + operand + mask) + gathered;
  // q, k, v and the attention's output; both sides of the activation function (a gated one has two inputs).
  // Experts receive the input of their first product. The attention's output is an operand as well: cast, it is
  // kept twice.
  double divided =
      n * (e * (2.0 * q + 2.0 * kv + inner * f) + operand * (f + routed * h) + (operand < e ? operand * q : 0.0));
  if (divides_heads()) {  // keys and values of one head a rank at least; the output once more as it came back
    divided += n * e * ((operand < e ? 0.0 : q) + 2.0 * std::max(options_.context * number(c.head_dim) - kv, 0.0));
  }
  const double source = number(source_tokens());
  if (source > 0.0) divided += n * q * (2.0 * e + (operand < e ? operand : 0.0)) + source * 2.0 * kv * e;
  double scores = 0.0;  // softmax output, dropout mask and dropout output, per head and pair of tokens
  if (options_.attention == AttentionKind::standard) {
    scores = number(batch_) * number(c.heads) / t * number(sequence_) * number(sequence_ + c.source) /
             options_.context *
             (2.0 * e + mask + (written_out(Fusion::softmax) && e < 4.0 ? 4.0 : 0.0));  // and softmax in fp32
  } else {
    scores = n * number(c.heads) / t * 4.0 * (halves() - 1);  // the log-sum-exp of each row
  }
  layer.recomputation[Recompute::none].kept = Bytes(replicated + divided + scores);
  layer.recomputation[Recompute::selective].kept = Bytes(replicated + divided);
  layer.recomputation[Recompute::full].kept = Bytes(norm_tokens() * h * e);
  layer.output = Bytes((n + source) * h * e);  // a decoder's stages hand on what the encoder made
  // Two gradients of the block's input, which its products add up. Code that keeps what it gathered gathers its
  // result's from the tensor ranks as well, and rearranges it, sequences being the second dimension (PyTorch,
  // distributed/_functional_collectives.py: all_gather_tensor joins the chunks of every other dimension than the first
  // by torch.cat).
  const double gradients = 2.0 + (gathered > 0.0 ? 2.0 : 0.0);
  layer.workspace = Bytes(n * e * std::max((c.gated_ffn ? 3.0 : 2.0) * f, gradients * h));
  keep_operators(layer);
  drop_modules(layer);
}

void BlockBuilder::set_embedding_memory(Layer& layer) const {
  const auto hidden = number(config_.hidden);
  layer.recomputation.keep(Bytes(has_dropout(config_.family) ? norm_tokens() * hidden : 0.0));
  layer.output = Bytes(element_.value() * number(tokens_) * hidden);
}

// Cross-entropy run eagerly widens the logits (4 bytes each), writes log-probabilities (4, kept) and in the backward
// pass two gradients of that size. The segment of the 2-byte logits is too small for any of these and stays reserved.
// Fused, it reads the logits and writes their gradient, both in the activations' format. In place, the widened logits
// and one copy are all: softmax and gradient are written over that (nanotron, tensor_parallel/functional.py,
// _ShardedCrossEntropy, after Megatron-LM's). In parts, all this is of one part, Liger's gradient over its logits.
// Beside it lie the parts of the hidden states, their gradient (torchtitan's in fp32), which alone is kept, and the
// weights'.
void BlockBuilder::set_head_memory(Layer& layer, std::int64_t rows, std::int64_t columns) const {
  const double e = element_.value();
  // Gathered, logits lie there as the other ranks sent them and once more as whole rows.
  const bool gathers = options_.tensor > 1 && options_.code.gather_logits;
  const auto logits = number(rows) * number(columns) * (gathers ? options_.tensor : 1.0);
  const double copies = (options_.code.inplace_cross_entropy ? 8.0 : 12.0) + (gathers ? 2.0 * e : 0.0);
  layer.recomputation.keep(Bytes(norm_tokens() * number(config_.hidden) * 2.0 * e));  // the norm's input and output
  const Loss& loss = options_.code.loss;
  const bool fused = loss.fused(options_.compiled), linear = loss.kind == Loss::Kind::fused_linear;
  const double each = linear ? e : fused ? 2.0 * e : copies + (e < 4.0 ? e : 0.0);
  layer.loss_kept = Bytes(logits * (fused ? e : 4.0));
  layer.loss_buffers = Bytes(logits * each);
  if (loss.in_parts()) {
    const double hidden = number(rows) * number(config_.hidden);
    layer.loss_kept = Bytes(hidden * (linear ? e : 4.0));
    layer.loss_buffers = layer.loss_kept + Bytes(logits * each / number(loss_parts(rows, config_.vocabulary)) +
                                                 (linear ? 0.0 : hidden * e) + number(columns * config_.hidden) * e);
  }
  if (options_.code.keep_gathered_inputs)
    layer.loss_buffers += Bytes((number(tokens_) - norm_tokens()) * number(config_.hidden) * e);
  // The copy that the loss reads of several sequences (one is cut without), and the output that is widened for its
  // reader (accelerate, utils/operations.py: convert_outputs_to_fp32), in blocks of their own.
  if (shifts_logits() && e < 4.0 && batch_ > 1) layer.loss_buffers += Bytes(logits * (e + 4.0));
  layer.output = Bytes(0.0);
}

}  // namespace foretrain
