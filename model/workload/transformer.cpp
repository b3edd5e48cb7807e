#include "model/workload/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/words.hpp"
#include "model/workload/block_builder.hpp"
#include "model/workload/plain_kernels.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

// BERT predicts the masked 15 % of the tokens only (Devlin et al. 2018, section 3.1); the others reach no output layer.
constexpr double masked_share = 0.15;

/// Layers in a row that are alike.
struct LayerRunOfKind {
  std::int64_t count = 1;
  LayerKind kind = LayerKind::block;
  bool has_experts = false;  ///< where the model has any
  bool attends_to_all = true;
  bool quantised = false;  ///< where the training casts operands

  [[nodiscard]] bool alike(const LayerRunOfKind& other) const {
    return kind == other.kind && has_experts == other.has_experts && attends_to_all == other.attends_to_all &&
           quantised == other.quantised;
  }
};

std::vector<LayerRunOfKind> layer_runs(const TransformerConfig& config, const QuantisationRecipe& recipe) {
  std::vector<LayerRunOfKind> runs;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const bool inside = i >= recipe.first_bf16_layers && i < config.layers - recipe.last_bf16_layers;
    const LayerKind kind = config.kind_of(i);
    const bool attends = kind == LayerKind::block || kind == LayerKind::attention;
    const LayerRunOfKind layer{1, kind, i >= config.dense_layers, !attends || config.attends_to_all(i), inside};
    if (!runs.empty() && runs.back().alike(layer)) {
      ++runs.back().count;
    } else {
      runs.push_back(layer);
    }
  }
  return runs;
}

/// A layer whose backward pass makes these gradients.
template <typename Make>
Layer layer_of_tower(Gradients gradients, Make make, const TransformerConfig& config, const BuildOptions& options) {
  const BlockBuilder build(config, options, gradients == Gradients::all);
  Layer layer = std::invoke(make, build);
  if (gradients == Gradients::inputs) hold_weights(layer);
  if (gradients == Gradients::none) forward_only(layer);
  return layer;
}

LayerGroup blocks_of_tower(const TransformerConfig& config, const BuildOptions& options, const TowerOptions& tower,
                           const LayerRunOfKind& run) {
  TransformerConfig of = run.has_experts ? config : config.without_experts();
  if (run.attends_to_all) of = of.without_window();
  BuildOptions with = options;
  if (!run.quantised) with.precision = storage_precision(options.precision);
  const auto make = [&run](const BlockBuilder& build) { return build.block(run.kind); };
  Layer block = layer_of_tower(tower.blocks, make, of, with);
  if (tower.blocks == Gradients::inputs) {
    adapt_frozen_block(block, tower.lora, of,
                       {BlockBuilder(of, options).tokens(), options.tensor, options.sequence_parallel,
                        storage_precision(options.precision)});
  }
  return {std::move(block), static_cast<int>(run.count)};
}

std::vector<LayerGroup> layers_of_tower(const TransformerConfig& config, const BuildOptions& options,
                                        const TowerOptions& tower) {
  std::vector<LayerGroup> layers;
  layers.push_back({layer_of_tower(tower.embedding, &BlockBuilder::embedding, config, options), 1});
  for (const LayerRunOfKind& run : layer_runs(config, options.recipe)) {
    layers.push_back(blocks_of_tower(config, options, tower, run));
  }
  if (tower.headless) return layers;
  if (config.mtp_layers > 0) {
    Layer further = layer_of_tower(tower.blocks, &BlockBuilder::further_token, config, options);
    layers.push_back({std::move(further), static_cast<int>(config.mtp_layers)});
  }
  layers.push_back({layer_of_tower(tower.head, &BlockBuilder::head, config, options), 1});
  return layers;
}

}  // namespace

void BlockBuilder::attention_half(Layer& layer) const {
  const auto& c = config_;
  const std::int64_t t = options_.tensor;
  const std::int64_t kv_heads = std::max<std::int64_t>(c.kv_heads / t, 1);  // shared when there are fewer than ranks
  // Latent attention's products over the scores are head_dim + rope_head_dim and v_head_dim long.
  const std::int64_t head_dim = c.latent() ? (c.head_dim + c.rope_head_dim + c.v_head_dim) / 2 : c.head_dim;
  const std::int64_t q_width = c.heads * head_dim / t, kv_width = kv_heads * head_dim;
  norm(layer, "attention norm", c.latent() ? 2 : joins_queries() ? 1 : 3);
  attention_projections(layer, q_width, kv_width);
  const auto queries = number(tokens_) * number(q_width), keys = number(tokens_) * number(kv_width);
  if (c.qk_norm) norm_over(layer, "query-key norm", queries + keys);
  if (plain()) append_plain_copies(layer, c, options_, queries, keys);
  if (c.family == TransformerFamily::llama && fuses(Fusion::rotary)) {
    stream(layer, "rotary embedding", StreamingKind::elementwise, queries + keys, 1, 1, 1, 1);
  }
  attention_kernels(layer, attention_core(kv_heads, head_dim));
  const std::int64_t out_width = c.latent() ? c.heads * c.v_head_dim / t : q_width;
  block_linear(layer, "attention output", tokens_, c.hidden, out_width, true);
  layer.matrices.push_back({c.hidden, out_width});
  if (c.post_norms) norm(layer, "attention output norm");
  residual(layer, "attention residual");
}

void BlockBuilder::attention_projections(Layer& layer, std::int64_t q_width, std::int64_t kv_width) const {
  const auto& c = config_;
  if (c.latent()) {
    latent_projections(layer);
  } else if (!joins_queries()) {
    const auto project = [&](OperatorRole role, const char* name, std::int64_t width, bool cast_input) {
      block_linear(layer, name, tokens_, width, c.hidden, cast_input);
      layer.forward.back().role = role;
    };
    project(OperatorRole::query, "query projection", q_width, plain());  // casts for all three
    project(OperatorRole::key, "key projection", kv_width, false);
    project(OperatorRole::value, "value projection", kv_width, false);
  } else {
    block_linear(layer, "qkv projection", tokens_, q_width + 2 * kv_width, c.hidden, plain());
    layer.forward.back().role = OperatorRole::joined_qkv;
  }
  if (!c.latent()) layer.matrices.push_back({q_width + 2 * kv_width, c.hidden});
  separate_bias(layer, "qkv bias", number(tokens_) * number(q_width + 2 * kv_width));
}

Attention BlockBuilder::attention_core(std::int64_t kv_heads, std::int64_t head_dim) const {
  const auto& c = config_;
  const std::int64_t heads = c.heads / options_.tensor, queries = sequence_ / options_.context;
  Attention core{batch_, heads, kv_heads, queries, sequence_, head_dim, is_causal(c.family), options_.attention};
  core.biased = c.family == TransformerFamily::mpt;
  core.window = c.window;
  // A window's pieces are in order.
  const bool balanced = options_.code.context_pieces == ContextPieces::balanced;
  if (options_.context > 1 && core.causal && core.window == 0 && balanced) {
    core.batch *= options_.context;
    core.key_length = core.query_length;
    core.ring = true;
  }
  core.dropout = has_dropout(c.family);
  // Trainers fuse scaling, mask and softmax (Megatron); compilers write reductions that each read the scores (XLA).
  core.fused_softmax = fuses(Fusion::softmax) || !options_.compiled;
  core.native = options_.code.native_attention;
  return core;
}

void BlockBuilder::attention_kernels(Layer& layer, Attention core) const {
  const int kernels = options_.attention == AttentionKind::standard ? 4 : 1;
  if (!fuses(Fusion::softmax) && core.kind == AttentionKind::standard) {
    const auto pairs = number(core.batch) * number(core.heads) * number(core.query_length) * number(core.key_length);
    append_streams(layer, "scores", plain_scores(element_), pairs, options_);
  }
  layer.forward.push_back({"attention", core, activations_, kernels});
  layer.recomputation[Recompute::selective].again.push_back(layer.forward.back());
  core.backward = true;
  layer.backward.push_back({"attention backward", core, activations_, kernels + 1});
  if (options_.context == 1) return;
  // Ring attention: every rank sees the keys and values of all others; a step's exchange runs beside the previous
  // step's products.
  const Bytes keys_values = element_ * 2.0 * number(batch_ * sequence_) * number(core.kv_heads * core.head_dim);
  using enum CollectiveOperation;
  constexpr auto group = LayerCollective::Group::context;
  layer.forward_collectives.push_back({all_gather, group, keys_values});
  layer.backward_collectives.push_back({all_gather, group, keys_values});
  layer.backward_collectives.push_back({reduce_scatter, group, keys_values});
}

// The way down is not divided over tensor ranks (Megatron-Core, multi_latent_attention.py): all need the latent
// vectors.
void BlockBuilder::latent_projections(Layer& layer) const {
  const auto& c = config_;
  const std::int64_t heads = c.heads / options_.tensor;
  const auto project = [&](const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    block_linear(layer, name, tokens_, outputs, inputs, false);
    layer.matrices.push_back({outputs, inputs});
  };
  const std::int64_t q_width = heads * (c.head_dim + c.rope_head_dim);
  if (c.q_lora_rank > 0) {
    project("query down projection", c.q_lora_rank, c.hidden);
    norm_over(layer, "query norm", number(tokens_) * number(c.q_lora_rank));
  }
  project("query projection", q_width, c.q_lora_rank > 0 ? c.q_lora_rank : c.hidden);
  layer.forward.back().role = OperatorRole::out_of_latent;
  project("key-value down projection", c.kv_lora_rank + c.rope_head_dim, c.hidden);
  norm_over(layer, "key-value norm", number(tokens_) * number(c.kv_lora_rank));
  project("key-value projection", heads * (c.head_dim + c.v_head_dim), c.kv_lora_rank);
  layer.forward.back().role = OperatorRole::out_of_latent;
}

void BlockBuilder::ffn_half(Layer& layer) const {
  norm(layer, "ffn norm", has_own_gate() ? 2 : 1);
  ffn_products(layer, "ffn", tokens_, config_.ffn_hidden / options_.tensor, 1, false);
  if (config_.post_norms) norm(layer, "ffn output norm");
  residual(layer, "ffn residual");
}

void BlockBuilder::ffn_products(Layer& layer, const std::string& name, std::int64_t rows, std::int64_t width,
                                std::int64_t batch, bool experts) const {
  const auto& c = config_;
  const bool cast_input = experts || plain();
  if (has_own_gate()) {
    block_linear(layer, name + " gate", rows, width, c.hidden, cast_input, batch, experts);
    layer.forward.back().role = OperatorRole::gate;
    block_linear(layer, name + " up", rows, width, c.hidden, false, batch, experts);
  } else {
    block_linear(layer, name + " up", rows, (c.gated_ffn ? 2 : 1) * width, c.hidden, cast_input, batch, experts);
  }
  layer.forward.back().role = OperatorRole::up;
  layer.matrices.push_back({(c.gated_ffn ? 2 : 1) * width, c.hidden, batch, experts});
  const auto activated = number(batch) * number(rows) * number(width);
  if (!fuses(Fusion::activation)) separate_bias(layer, name + " bias", activated);
  Marker added(layer);
  if (c.gated_ffn && !fuses(Fusion::activation)) {
    append_streams(layer, "activation", plain_gated_activation(element_), activated, options_);
  } else if (c.gated_ffn) {
    stream(layer, "gated activation", StreamingKind::elementwise, activated, 2, 1, 3, 2);
  } else {
    stream(layer, "activation", StreamingKind::elementwise, activated, 1, 1, 2, 1);
  }
  added.mark(OperatorRole::activation);
  block_linear(layer, name + " down", rows, c.hidden, width, true, batch, experts);
  layer.forward.back().role = OperatorRole::down;
  layer.matrices.push_back({c.hidden, width, batch, experts});
}

Layer BlockBuilder::block(LayerKind kind) const {
  const bool whole = kind == LayerKind::block;
  Layer layer;
  layer.name = whole ? "transformer block" : std::string(name(kind)) + " layer";
  layer.splittable = true;
  Marker part(layer);
  if (kind == LayerKind::mamba) mamba_layer(layer);
  if (whole || kind == LayerKind::attention) attention_half(layer);
  part.mark(LayerPart::attention);
  if (kind == LayerKind::experts || (whole && config_.experts > 1)) {
    experts_half(layer);
  } else if (whole || kind == LayerKind::feed_forward) {
    ffn_half(layer);
  }
  if (!has_dropout(config_.family)) {
    // The last product reads what it saves before it runs; without a dropout mask nothing after that is saved.
    const auto last = std::find_if(layer.forward.rbegin(), layer.forward.rend(),
                                   [](const Operator& op) { return std::holds_alternative<Matmul>(op.work); });
    layer.unread_tail = at_index(last - layer.forward.rbegin()) + 1;
  }
  // Experts have their own.
  const int halves = (whole ? 2 : 1) - (layer.routes_tokens ? 1 : 0);
  if (halves > 0) tensor_collectives(layer, halves);
  std::reverse(layer.backward.begin(), layer.backward.end());
  whole ? set_block_memory(layer) : set_half_memory(layer, kind);
  const TransformerCounts n = transformer_counts(config_, kind);
  const double t = options_.tensor;
  layer.expert_parameters = n.experts / t / options_.expert;
  layer.parameters = n.attention / t + n.ffn / t + n.mamba / t + layer.expert_parameters + n.norms;
  return layer;
}

Layer BlockBuilder::embedding() const {
  const auto& c = config_;
  Layer layer;
  layer.name = "embedding";
  layer.recomputable = false;
  const double t = options_.tensor;
  const auto width = number(tokens_) * number(c.hidden);
  if (c.family == TransformerFamily::vit) {
    const std::int64_t patches = tokens_ - tokens_ / sequence_;  // all tokens but one of each image
    linear(layer, "patch projection", patches, c.hidden / options_.tensor, 3 * c.patch_size * c.patch_size,
           activations_);
    layer.backward.erase(layer.backward.begin());  // images need no gradient
  } else {
    // Forward gathers a row a token and adds positions; backward scatters the gradients back.
    stream(layer, "embedding", StreamingKind::gather, width * (stream_ / element_),
           has_learned_positions(c.family) ? 2 : 1, 1, 1, 2, 2);
    if (options_.tensor > 1) {
      // A rank has the rows of some words. Under sequence parallelism each rank then needs those of its own tokens
      // alone; where positions are added, Megatron-Core adds them to all (embeddings/language_model_embedding.py,
      // reduce_scatter_embeddings).
      using enum CollectiveOperation;
      const bool scattered = options_.sequence_parallel && !has_learned_positions(c.family);
      constexpr auto group = LayerCollective::Group::tensor;
      layer.forward_collectives.push_back({scattered ? reduce_scatter : all_reduce, group, element_ * width});
      if (options_.sequence_parallel) layer.backward_collectives.push_back({all_gather, group, element_ * width});
    }
  }
  if (plain() && c.family == TransformerFamily::bert) norm(layer, "embedding norm");
  if (plain() && c.vocabulary > 0) {
    const auto numbers = number(c.vocabulary) * number(c.hidden) / t;
    append_streams(layer, "embedding table", plain_table_gradient(c.tied_embeddings), numbers, options_);
  }
  if (has_dropout(c.family) && stream_ == element_) {
    residual(layer, "embedding dropout");
  } else if (has_dropout(c.family)) {
    const double wide = stream_ / element_, both = wide + 1.0 / element_.value();
    stream(layer, "embedding dropout", StreamingKind::elementwise, width, wide, both, both, wide);
  }
  std::reverse(layer.backward.begin(), layer.backward.end());
  layer.parameters = transformer_counts(c).embedding / t;
  layer.matrices = embedding_matrices(c, options_.tensor);
  set_embedding_memory(layer);
  return layer;
}

Layer BlockBuilder::head() const {
  const auto& c = config_;
  Layer layer;
  layer.name = "head";
  layer.recomputable = false;
  const std::int64_t t = options_.tensor;
  norm(layer, "final norm", 1);
  std::int64_t rows = tokens_;
  std::int64_t outputs = c.vocabulary;
  if (c.family == TransformerFamily::vit) {
    rows = options_.micro_batch;
    outputs = c.classes;
  } else if (c.family == TransformerFamily::bert) {
    rows = std::max<std::int64_t>(std::llround(masked_share * number(tokens_)), 1);
    linear(layer, "masked-token transform", rows, c.hidden, c.hidden, activations_);
    linear(layer, "pooler", options_.micro_batch, c.hidden, c.hidden, activations_);
  }
  const std::int64_t columns = (outputs + t - 1) / t;
  // What is compiled block by block leaves the loss to the framework, and its logits with it.
  linear(layer, "logits", rows, columns, c.hidden, activations_, 1, false, options_.fused_loss);
  // Fused, it reads logits twice (each row's maximum and sum in one pass, then the gradient, which takes their place)
  // and the backward pass scales that (Transformer Engine, common/triton/cross_entropy.py; Liger,
  // ops/cross_entropy.py). Else cross-entropy in fp32, one kernel a step as trainers run it eagerly: logits are widened
  // (read e, write 4), each row's maximum and sum are found (read 4), and log-probabilities written (read 4, write 4);
  // backward, the one-hot gradient is written (4), combined with the probabilities (read 8, write 4) and narrowed (read
  // 4, write e).
  const auto logits = number(rows) * number(columns);
  if (c.family == TransformerFamily::bert) separate_bias(layer, "logits bias", logits);
  const double wide = 4.0 / element_.value();
  Marker added(layer);
  if (options_.fused_loss) {
    stream(layer, "cross-entropy", StreamingKind::reduction, logits, 2, 1, 1, 1);
  } else {
    stream(layer, "cross-entropy", StreamingKind::reduction, logits, 1 + 2 * wide, 2 * wide, 3 * wide, 2 * wide + 1, 3);
  }
  added.mark(OperatorRole::loss);
  if (t > 1) {
    const Bytes size = element_ * (number(tokens_) * number(c.hidden));
    using enum CollectiveOperation;
    constexpr auto group = LayerCollective::Group::tensor;
    if (options_.sequence_parallel) {
      layer.forward_collectives.push_back({all_gather, group, size});
      layer.backward_collectives.push_back({reduce_scatter, group, size});
    } else {
      layer.backward_collectives.push_back({all_reduce, group, size});
    }
    // row maximum, sum of exponentials and target logit of each token
    layer.forward_collectives.push_back({all_reduce, group, Bytes(4.0 * number(rows)), 3});
  }
  std::reverse(layer.backward.begin(), layer.backward.end());
  layer.parameters = transformer_counts(c).head / number(t);
  layer.matrices = head_matrices(c, options_.tensor);
  set_head_memory(layer, rows, columns);
  return layer;
}

Model build_transformer(const TransformerConfig& config, const std::string& name, const BuildOptions& options,
                        const TowerOptions& tower) {
  Model model;
  model.name = name;
  model.layers = layers_of_tower(config, options, tower);
  model.parameters = transformer_parameters(config) - (tower.headless ? transformer_counts(config).head : 0.0);
  model.idle_parameters = idle_parameters(config);

  Flops forward;
  for (const LayerGroup& group : model.layers) {
    for (const Operator& op : group.layer.forward) {
      if (!std::holds_alternative<Streaming>(op.work)) forward += flops(op) * number(group.repeat);
    }
  }
  // Per rank and micro-batch → whole model and one sample. Work divided over t, context and expert ranks adds up again.
  const double ranks = number(options.tensor) * options.context;
  model.forward_flops_per_sample = forward * (ranks / number(options.micro_batch));
  if (config.expert_load() != 1.0) {  // the mathematics knows of no imbalance
    TransformerConfig balanced = config;
    balanced.expert_imbalance = 1.0;
    balanced.expert_capacity = 0.0;
    model.forward_flops_per_sample = build_transformer(balanced, name, options, tower).forward_flops_per_sample;
  }
  const bool images = config.family == TransformerFamily::vit;
  model.tokens_per_sample = images ? 0.0 : number(config.sequence);
  model.input_bytes_per_sample =
      Bytes(images ? 12.0 * (number(config.image_size) * number(config.image_size)) : 8.0 * number(config.sequence));
  return model;
}

}  // namespace foretrain
