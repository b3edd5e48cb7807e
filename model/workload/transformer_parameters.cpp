#include "model/workload/transformer_parameters.hpp"

#include <algorithm>

#include "model/base/number.hpp"

namespace foretrain {

// Image encoders: open_clip's transformer has no dropout layers; torchvision's vision_transformer.py, transformers'
// ViTConfig, CLIPVisionConfig and SiglipVisionConfig have rates of 0. T5Config has 0.1.
bool has_dropout(TransformerFamily family) {
  return family == TransformerFamily::gpt || family == TransformerFamily::bert || family == TransformerFamily::t5;
}

bool has_learned_positions(TransformerFamily family) {
  return family == TransformerFamily::gpt || family == TransformerFamily::bert || family == TransformerFamily::vit;
}

bool is_causal(TransformerFamily family) {
  return family != TransformerFamily::bert && family != TransformerFamily::vit;
}

double norm_parameters(const TransformerConfig& c) {
  return number(c.hidden) * (c.has_rms_norm() || !c.biases ? 1.0 : 2.0);
}

std::int64_t tokens_of_sample(const TransformerConfig& c) {
  if (c.family != TransformerFamily::vit) return c.sequence;
  const std::int64_t side = c.image_size / c.patch_size;
  return side * side + 1;
}

namespace {

/// Down to the latent vectors and their norms, up to the heads, and the output.
double latent_attention(const TransformerConfig& c) {
  const auto h = number(c.hidden), heads = number(c.heads), latent = number(c.kv_lora_rank);
  const auto ql = number(c.q_lora_rank);
  const double q_width = heads * number(c.head_dim + c.rope_head_dim);
  const double queries = c.q_lora_rank > 0 ? h * ql + ql + ql * q_width : h * q_width;
  const double keys = h * (latent + number(c.rope_head_dim)) + latent;
  return queries + keys + latent * heads * number(c.head_dim + c.v_head_dim) + heads * number(c.v_head_dim) * h;
}

// Buckets of token distances, each with a bias for every head and stack (T5Config: relative_attention_num_buckets).
constexpr double distance_buckets = 32.0;

/// In and out, the convolution, a rate of decay, a step's bias and a skip for each head, and the gated norm's scale;
/// of Mamba-1 a rate for each number of the states, and what steps and inputs of states come from.
double mamba_layer_parameters(const TransformerConfig& c) {
  const auto h = number(c.hidden), inner = number(c.mamba.inner()), convolved = number(c.mamba.convolved());
  if (const auto rank = number(c.mamba.step_rank); rank > 0.0) {
    const auto state = number(c.mamba.state), kernel = number(c.mamba.kernel);
    return inner * (3.0 * h + kernel + 1.0 + 2.0 * rank + 3.0 * state + 2.0);
  }
  return h * (inner + convolved + number(c.mamba.heads)) + inner * h + convolved * number(c.mamba.kernel + 1) +
         3.0 * number(c.mamba.heads) + inner;
}

double layer_parameters(const TransformerConfig& config, double of_experts) {
  double sum = 0.0;
  for (const LayerKind kind :
       {LayerKind::block, LayerKind::mamba, LayerKind::attention, LayerKind::feed_forward, LayerKind::experts}) {
    std::int64_t layers = 0;
    for (std::int64_t i = 0; i < config.layers; ++i) layers += config.kind_of(i) == kind ? 1 : 0;
    const std::int64_t dense = kind == LayerKind::block ? config.dense_layers : 0;
    const TransformerCounts n = transformer_counts(config, kind);
    sum +=
        number(layers) * (n.attention + n.norms) + number(layers - dense) * (n.ffn + of_experts * n.experts + n.mamba);
    if (dense > 0) sum += number(dense) * transformer_counts(config.without_experts()).ffn;
  }
  return sum;
}

}  // namespace

TransformerCounts transformer_counts(const TransformerConfig& c, LayerKind kind) {
  const auto h = number(c.hidden);
  const auto q = number(c.heads) * number(c.head_dim);
  const auto kv = number(c.kv_heads) * number(c.head_dim);
  const auto f = number(c.ffn_hidden);
  const auto v = number(c.vocabulary);
  const double bias = c.biases ? 1.0 : 0.0, norm = norm_parameters(c);

  TransformerCounts n{};
  n.attention = c.latent() ? latent_attention(c) : h * (q + 2.0 * kv) + q * h + bias * (q + 2.0 * kv + h);
  const double up = c.gated_ffn ? 2.0 : 1.0;
  n.ffn = (up + 1.0) * h * f + bias * (up * f + h);
  const double without_experts = n.ffn;
  if (c.experts > 1) {
    n.experts = number(c.experts) * n.ffn;
    n.ffn = h * number(c.experts) + number(c.shared_experts) * n.ffn;  // the router, and what every token meets
  }
  n.norms = (kind == LayerKind::block ? 2.0 : 1.0) * norm * (c.post_norms ? 2.0 : 1.0);
  if (c.qk_norm) n.attention += 2.0 * number(c.head_dim);
  if (c.source > 0) {  // attention to the encoder is as wide as to the tokens themselves
    n.attention *= 2.0;
    n.norms += norm;
  }
  if (c.attention_sinks) n.attention += number(c.heads);
  if (kind == LayerKind::mamba) n.mamba = mamba_layer_parameters(c);
  if (kind != LayerKind::block && kind != LayerKind::attention) n.attention = 0.0;
  if (kind != LayerKind::block && kind != LayerKind::experts) n.experts = 0.0;
  if (kind == LayerKind::feed_forward && c.experts > 1) n.ffn = without_experts;
  if (kind == LayerKind::mamba || kind == LayerKind::attention) n.ffn = 0.0;
  switch (c.family) {
    case TransformerFamily::vit: {
      const double patch = 3.0 * (number(c.patch_size) * number(c.patch_size));
      n.embedding = patch * h + h + h + number(tokens_of_sample(c)) * h;  // projection, class token, positions
      n.head = norm + h * number(c.classes) + number(c.classes);
      break;
    }
    case TransformerFamily::bert:
      // word, position (512) and segment (2) tables, their norm; pooler; masked-token head tied to the word table
      n.embedding = (v + 512.0 + 2.0) * h + norm;
      n.head = (h * h + h) + (h * h + h + norm + v);
      break;
    default:
      n.embedding = v * h + (has_learned_positions(c.family) ? number(c.sequence) * h : 0.0);
      if (c.family == TransformerFamily::t5) n.embedding += 2.0 * distance_buckets * number(c.heads);
      n.head = norm + (c.tied_embeddings ? 0.0 : v * h);
  }
  return n;
}

double transformer_parameters(const TransformerConfig& config, double of_experts) {
  const TransformerCounts ends = transformer_counts(config);
  double sum = ends.embedding + ends.head;
  if (config.decoder_layers > 0) sum += norm_parameters(config);  // behind the encoder
  for (const TransformerConfig& stack : config.stacks()) sum += layer_parameters(stack, of_experts);
  return sum;
}

double idle_parameters(const TransformerConfig& config) {
  if (config.experts <= config.experts_per_token) return 0.0;
  const double met = number(config.experts_per_token) / number(config.experts);
  return transformer_parameters(config) - transformer_parameters(config, met);
}

std::vector<WeightMatrix> embedding_matrices(const TransformerConfig& c, std::int64_t tensor) {
  // Rows of BERT's tables of positions and segments (Devlin et al. 2018, section 3).
  constexpr std::int64_t bert_positions = 512, bert_segments = 2;
  const auto share = [&](std::int64_t rows) { return std::max<std::int64_t>(rows / tensor, 1); };
  if (c.family == TransformerFamily::vit) {
    return {{share(c.hidden), 3 * c.patch_size * c.patch_size}, {share(tokens_of_sample(c)), c.hidden}};
  }
  std::vector<WeightMatrix> matrices = {{share(c.vocabulary), c.hidden}};
  if (!has_learned_positions(c.family)) return matrices;
  const bool bert = c.family == TransformerFamily::bert;
  matrices.push_back({share(bert ? bert_positions : c.sequence), c.hidden});
  if (bert) matrices.push_back({bert_segments, c.hidden});
  return matrices;
}

std::vector<WeightMatrix> head_matrices(const TransformerConfig& c, std::int64_t tensor) {
  const auto share = [&](std::int64_t rows) { return std::max<std::int64_t>(rows / tensor, 1); };
  if (c.family == TransformerFamily::bert) return {{share(c.hidden), c.hidden, 2}};  // masked-token transform, pooler
  if (c.family == TransformerFamily::vit) return {{share(c.classes), c.hidden}};
  if (c.tied_embeddings) return {};
  return {{share(c.vocabulary), c.hidden}};
}

}  // namespace foretrain
