#include "model/workload/transformer.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/words.hpp"
#include "model/workload/block_builder.hpp"
#include "model/workload/plain_kernels.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

/// Layers in a row that are alike.
struct LayerRunOfKind {
  std::int64_t count = 1;
  LayerKind kind = LayerKind::block;
  bool has_experts = false;  ///< if the model has any
  bool attends_to_all = true;
  bool quantised = false;  ///< if the training casts operands

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
Layer layer_of_tower(Gradients gradients, const std::function<Layer(const BlockBuilder&)>& make,
                     const TransformerConfig& config, const BuildOptions& options) {
  Layer layer = make(BlockBuilder(config, options, gradients == Gradients::all));
  if (gradients == Gradients::inputs) hold_weights(layer);
  if (gradients == Gradients::none) forward_only(layer);
  if (gradients != Gradients::all)
    store_quantised(layer, options.parts.quantised, storage_precision(options.precision));
  return layer;
}

LayerGroup blocks_of_tower(const TransformerConfig& config, const BuildOptions& options, const TowerOptions& tower,
                           const LayerRunOfKind& run) {
  TransformerConfig of = run.has_experts ? config : config.without_experts();
  if (run.attends_to_all) of = of.without_window();
  BuildOptions with = options;
  if (!run.quantised) with.precision = storage_precision(options.precision);
  const auto make = [&run](const BlockBuilder& build) { return build.block(run.kind); };
  Layer block = layer_of_tower(tower.gradients.blocks, make, of, with);
  if (tower.gradients.blocks == Gradients::inputs) {
    adapt_frozen_block(block, tower.lora, of,
                       {BlockBuilder(of, options).tokens(), options.tensor, options.sequence_parallel,
                        storage_precision(options.precision), options.code.kernels == KernelSet::unfused});
  }
  return {std::move(block), static_cast<int>(run.count)};
}

std::vector<LayerGroup> layers_of_tower(const TransformerConfig& config, const BuildOptions& options,
                                        const TowerOptions& tower) {
  std::vector<LayerGroup> layers;
  layers.push_back({layer_of_tower(tower.gradients.embedding, &BlockBuilder::embedding, config, options), 1});
  const std::vector<TransformerConfig> stacks = config.stacks();
  for (const TransformerConfig& stack : stacks) {
    for (const LayerRunOfKind& run : layer_runs(stack, options.recipe)) {
      layers.push_back(blocks_of_tower(stack, options, tower, run));
    }
    if (&stack == &stacks.back()) continue;
    layers.push_back({layer_of_tower(tower.gradients.blocks, &BlockBuilder::encoder_norm, config, options), 1});
  }
  if (tower.headless) return layers;
  if (config.mtp_layers > 0) {
    Layer further = layer_of_tower(tower.gradients.blocks, &BlockBuilder::further_token, config, options);
    layers.push_back({std::move(further), static_cast<int>(config.mtp_layers)});
  }
  layers.push_back({layer_of_tower(tower.gradients.head, &BlockBuilder::head, stacks.back(), options), 1});
  return layers;
}

}  // namespace

void BlockBuilder::attention_half(Layer& layer, bool cross) const {
  const auto& c = config_;
  const std::int64_t t = options_.tensor;
  const std::int64_t kv_heads = std::max<std::int64_t>(c.kv_heads / t, 1);  // shared when there are fewer than ranks
  // Latent attention's products over the scores are head_dim + rope_head_dim and v_head_dim long.
  const std::int64_t head_dim = c.latent() ? (c.head_dim + c.rope_head_dim + c.v_head_dim) / 2 : c.head_dim;
  const std::int64_t q_width = c.heads * head_dim / t, kv_width = kv_heads * head_dim;
  const std::string name = cross ? "cross-attention" : "attention";
  norm(layer, name + " norm", c.latent() ? 2 : joins_queries() || cross ? 1 : 3);
  attention_projections(layer, q_width, kv_width, cross);
  const auto queries = number(tokens_) * number(q_width);
  const auto keys = number(cross ? source_tokens() : tokens_) * number(kv_width);
  if (c.qk_norm) norm_over(layer, "query-key norm", queries + keys);
  if (plain()) append_plain_copies(layer, c, options_, queries, keys);
  if (c.family == TransformerFamily::llama && fuses(Fusion::rotary)) {
    stream(layer, "rotary embedding", StreamingKind::elementwise, queries + keys, 1, 1, 1, 1);
  }
  attention_kernels(layer, attention_core(kv_heads, head_dim, cross));
  const std::int64_t out_width = c.latent() ? c.heads * c.v_head_dim / t : q_width;
  block_linear(layer, name + " output", tokens_, c.hidden, out_width, true);
  layer.matrices.push_back({c.hidden, out_width});
  if (c.post_norms) norm(layer, name + " output norm");
  residual(layer, name + " residual");
}

void BlockBuilder::attention_projections(Layer& layer, std::int64_t q_width, std::int64_t kv_width, bool cross) const {
  const auto& c = config_;
  const std::int64_t key_tokens = cross ? source_tokens() : tokens_;
  const auto project = [&](OperatorRole role, const char* name, std::int64_t tokens, std::int64_t width, bool cast) {
    block_linear(layer, name, tokens, width, c.hidden, cast);
    layer.forward.back().role = role;
  };
  if (c.latent()) {
    latent_projections(layer);
  } else if (joins_queries() && !cross) {
    project(OperatorRole::joined_qkv, "qkv projection", tokens_, q_width + 2 * kv_width, plain());
  } else {
    project(OperatorRole::query, "query projection", tokens_, q_width, plain());  // casts for all three
    if (joins_queries()) {
      project(OperatorRole::joined_qkv, "key-value projection", key_tokens, 2 * kv_width, plain());
    } else {
      project(OperatorRole::key, "key projection", key_tokens, kv_width, plain() && cross);
      project(OperatorRole::value, "value projection", key_tokens, kv_width, false);
    }
  }
  if (!c.latent()) layer.matrices.push_back({q_width + 2 * kv_width, c.hidden});
  separate_bias(layer, "qkv bias", number(tokens_) * number(q_width) + 2.0 * number(key_tokens) * number(kv_width));
}

Attention BlockBuilder::attention_core(std::int64_t kv_heads, std::int64_t head_dim, bool cross) const {
  const auto& c = config_;
  const std::int64_t sharers = divides_heads() ? options_.context : 1;  // of heads; the others share the sequence
  const std::int64_t heads = c.heads / options_.tensor / sharers, queries = sequence_ * sharers / options_.context;
  const bool encodes = c.family == TransformerFamily::t5 && c.source == 0;
  const bool causal = is_causal(c.family) && !encodes && !cross;
  const std::int64_t keys = cross ? c.source : sequence_;
  Attention core{batch_,
                 heads,
                 std::max<std::int64_t>(kv_heads / sharers, 1),
                 queries,
                 keys,
                 head_dim,
                 causal,
                 options_.attention};
  core.biased = (c.family == TransformerFamily::mpt || c.family == TransformerFamily::t5) && !cross;
  core.window = cross ? 0 : c.window;
  // A window's pieces are in order.
  const bool balanced = options_.code.context_sharding == ContextSharding::zigzag;
  if (options_.context > sharers && core.causal && core.window == 0 && balanced) {
    core.batch *= options_.context;
    core.key_length = core.query_length;
    core.ring = !plain() && options_.context_method == ContextMethod::ring;
  }
  core.dropout = has_dropout(c.family);
  // Trainers fuse scaling, mask and softmax (Megatron); compilers write reductions that each read the scores (XLA).
  core.fused_softmax = fuses(Fusion::softmax) || !options_.compiled;
  core.native = options_.code.native_attention;
  core.deterministic = options_.code.deterministic;
  return core;
}

// PyTorch's ring adds up what each further step leaves, in fp32 and by operations written out
// (tensor/experimental/_attention.py, _SDPAMerger, and _templated_ring_attention_backward for the queries' gradient):
// widened (read e, write 4), subtracted (8, 4), scaled (4, 4), subtracted (8, 4), of all queries in half of the steps
// and of half in the others, which are then joined to the rest (4, 4).
void BlockBuilder::merge_ring_steps(Layer& layer, const Attention& core) const {
  const double e = element_.value();
  const double steps = options_.context - 1.0;
  const double elements =
      steps * number(core.batch / options_.context * core.heads) * number(core.query_length * core.head_dim);
  const double both = 0.75, joined = 0.5 * 4.0;
  layer.forward.push_back(streaming_operator("ring sums", StreamingKind::reduction, elements,
                                             (both * (e + 20.0) + joined) / e, (both * 16.0 + joined) / e, activations_,
                                             5 * (options_.context - 1)));
  layer.backward.push_back(streaming_operator("ring sums backward", StreamingKind::reduction, elements,
                                              both * (e + 4.0) / e, both * 4.0 / e, activations_,
                                              2 * (options_.context - 1)));
}

// Queries, keys, values and the output, and their gradients, each by an all-to-all of its own (DeepSpeed,
// sequence/layer.py: DistributedAttention), and by one copy into the order in which it leaves or is read
// (single_all_to_all: transpose().contiguous()). Keys and values of fewer heads than ranks are repeated first
// (runtime/sequence_parallel/ulysses_sp.py: kv_replication_factor).
void BlockBuilder::exchange_heads(Layer& layer, const Attention& core) const {
  const double elements = 2.0 * (core.queries() + core.keys());
  const Operator copies =
      streaming_operator("head copies", StreamingKind::elementwise, elements, 1, 1, activations_, 4);
  layer.forward.push_back(copies);
  layer.backward.push_back(copies);
  for (auto* collectives : {&layer.forward_collectives, &layer.backward_collectives}) {
    for (const double each : {core.queries(), core.keys()}) {
      collectives->push_back({CollectiveOperation::all_to_all, LayerCollective::Group::context, element_ * each, 2});
    }
  }
}

void BlockBuilder::attention_kernels(Layer& layer, Attention core) const {
  const int kernels = options_.attention == AttentionKind::standard ? 4 : 1;
  if (!fuses(Fusion::softmax) && core.kind == AttentionKind::standard) {
    const auto pairs = number(core.batch) * number(core.heads) * number(core.query_length) * number(core.key_length);
    // Llama's code asks for fp32 itself (transformers, models/llama/modeling_llama.py, eager_attention_forward).
    const bool in_fp32 = options_.casts_weights || config_.family == TransformerFamily::llama;
    append_streams(layer, "scores", plain_scores(element_, in_fp32), pairs, options_);
  }
  layer.forward.push_back({"attention", core, activations_, kernels});
  layer.recomputation[Recompute::selective].again.push_back(layer.forward.back());
  core.backward = true;
  layer.backward.push_back({"attention backward", core, activations_, kernels + 1});
  if (options_.context == 1) return;
  if (divides_heads()) return exchange_heads(layer, core);
  if (core.batch > batch_ && plain() && options_.context_method == ContextMethod::ring) merge_ring_steps(layer, core);
  // Every rank sees the keys and values of all others; a step of a ring runs beside the previous step's products.
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
  if (config_.source > 0) layer.name = "decoder block";
  layer.splittable = true;
  Marker part(layer);
  if (kind == LayerKind::mamba) mamba_layer(layer);
  if (whole || kind == LayerKind::attention) attention_half(layer);
  if (config_.source > 0) attention_half(layer, true);
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
  const int exchanged = (whole ? halves() : 1) - (layer.routes_tokens ? 1 : 0);
  if (exchanged > 0) tensor_collectives(layer, exchanged);
  std::reverse(layer.backward.begin(), layer.backward.end());
  whole ? set_block_memory(layer) : set_half_memory(layer, kind);
  const TransformerCounts n = transformer_counts(config_, kind);
  const double t = options_.tensor;
  layer.expert_parameters = n.experts / t / options_.expert;
  layer.parameters = n.attention / t + n.ffn / t + n.mamba / t + layer.expert_parameters + n.norms;
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
  model.input_bytes_per_sample = Bytes(images ? 12.0 * (number(config.image_size) * number(config.image_size))
                                              : 8.0 * number(config.sequence + config.decoder_sequence));
  return model;
}

}  // namespace foretrain
