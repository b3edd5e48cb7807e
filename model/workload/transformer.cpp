#include "model/workload/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/number.hpp"
#include "model/workload/block_builder.hpp"
#include "model/workload/plain_kernels.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

// BERT predicts the masked 15 % of the tokens only (Devlin et al. 2018, section 3.1); the others reach no output layer.
constexpr double masked_share = 0.15;

}  // namespace

void BlockBuilder::attention_half(Layer& layer) const {
  const auto& c = config_;
  const std::int64_t t = options_.tensor;
  const std::int64_t kv_heads = std::max<std::int64_t>(c.kv_heads / t, 1);  // shared when there are fewer than ranks
  const std::int64_t q_width = c.heads * c.head_dim / t;
  const std::int64_t kv_width = kv_heads * c.head_dim;

  norm(layer, "attention norm");
  if (plain() && c.family != TransformerFamily::gpt) {  // GPT-2's code has one projection, that of others three
    block_linear(layer, "query projection", tokens_, q_width, c.hidden, false);
    block_linear(layer, "key projection", tokens_, kv_width, c.hidden, false);
    block_linear(layer, "value projection", tokens_, kv_width, c.hidden, false);
  } else {
    block_linear(layer, "qkv projection", tokens_, q_width + 2 * kv_width, c.hidden, false);
  }
  layer.matrices.push_back({q_width + 2 * kv_width, c.hidden});
  separate_bias(layer, "qkv bias", number(tokens_ * (q_width + 2 * kv_width)));
  const auto queries = number(tokens_ * q_width), keys = number(tokens_ * kv_width);
  if (plain()) {
    append_plain_copies(layer, c, options_, queries, keys);
  } else if (c.family == TransformerFamily::llama) {
    stream(layer, "rotary embedding", StreamingKind::elementwise, queries + keys, 1, 1, 1, 1);
  }
  Attention core{batch_,
                 c.heads / t,
                 kv_heads,
                 sequence_ / options_.context,
                 sequence_,
                 c.head_dim,
                 is_causal(c.family),
                 options_.attention,
                 false,
                 c.family == TransformerFamily::mpt};
  const int kernels = options_.attention == AttentionKind::standard ? 4 : 1;
  core.dropout = has_dropout(c.family);
  core.fused_softmax = true;  // trainers with standard attention fuse scaling, mask and softmax (Megatron)
  core.native = !plain();     // plain code calls FlashAttention-2
  if (plain() && core.kind == AttentionKind::standard) {
    const auto pairs = number(core.batch * core.heads * core.query_length * core.key_length);
    append_streams(layer, "scores", plain_scores(element_), pairs, activations_);
  }
  layer.forward.push_back({"attention", core, activations_, kernels});
  layer.selective_recompute.push_back(layer.forward.back());
  core.backward = true;
  layer.backward.push_back({"attention backward", core, activations_, kernels + 1});
  if (options_.context > 1) {
    // Ring attention: every rank sees the keys and values of all others; a step's exchange runs beside the previous
    // step's products.
    const Bytes keys_values = element_ * number(2 * batch_ * sequence_ * kv_width);
    constexpr auto group = LayerCollective::Group::context;
    layer.forward_collectives.push_back({LayerCollective::Kind::all_gather, group, keys_values, 1, true});
    layer.backward_collectives.push_back({LayerCollective::Kind::all_gather, group, keys_values, 1, true});
    layer.backward_collectives.push_back({LayerCollective::Kind::reduce_scatter, group, keys_values, 1, true});
  }
  block_linear(layer, "attention output", tokens_, c.hidden, q_width, true);
  layer.matrices.push_back({c.hidden, q_width});
  residual(layer, "attention residual");
}

void BlockBuilder::ffn_half(Layer& layer) const {
  const auto& c = config_;
  const std::int64_t width = c.ffn_hidden / options_.tensor;
  norm(layer, "ffn norm");
  std::int64_t batch = 1;
  std::int64_t rows = tokens_;
  if (c.experts > 1) {
    linear(layer, "router", tokens_, c.experts, c.hidden, activations_);
    layer.matrices.push_back({c.experts, c.hidden});
    batch = std::max<std::int64_t>(c.experts / options_.expert, 1);
    rows = std::max<std::int64_t>(tokens_ * c.experts_per_token / batch, 1);
    const auto routed = number(tokens_ * c.experts_per_token * c.hidden);
    stream(layer, "token dispatch", StreamingKind::gather, routed, 2, 2, 2, 2, 2);
    if (options_.expert > 1) {
      constexpr auto group = LayerCollective::Group::expert;
      layer.forward_collectives.push_back({LayerCollective::Kind::all_to_all, group, element_ * routed, 2, false});
      layer.backward_collectives.push_back({LayerCollective::Kind::all_to_all, group, element_ * routed, 2, false});
    }
  }
  if (plain() && c.gated_ffn) {
    block_linear(layer, "ffn gate", rows, width, c.hidden, c.experts > 1, batch);
    block_linear(layer, "ffn up", rows, width, c.hidden, false, batch);
  } else {
    block_linear(layer, "ffn up", rows, (c.gated_ffn ? 2 : 1) * width, c.hidden, c.experts > 1, batch);
  }
  layer.matrices.push_back({(c.gated_ffn ? 2 : 1) * width, c.hidden, batch, c.experts > 1});
  const auto activated = number(batch * rows * width);
  separate_bias(layer, "ffn bias", activated);
  if (c.gated_ffn && plain()) {
    append_streams(layer, "activation", plain_gated_activation(element_), activated, activations_);
  } else if (c.gated_ffn) {
    stream(layer, "gated activation", StreamingKind::elementwise, activated, 2, 1, 3, 2);
  } else {
    stream(layer, "activation", StreamingKind::elementwise, activated, 1, 1, 2, 1);
  }
  block_linear(layer, "ffn down", rows, c.hidden, width, true, batch);
  layer.matrices.push_back({c.hidden, width, batch, c.experts > 1});
  residual(layer, "ffn residual");
}

Layer BlockBuilder::block() const {
  Layer layer;
  layer.name = "transformer block";
  layer.splittable = true;
  attention_half(layer);
  ffn_half(layer);
  if (!has_dropout(config_.family)) {
    // The last product reads what it saves before it runs; without a dropout mask nothing after that is saved.
    const auto last = std::find_if(layer.forward.rbegin(), layer.forward.rend(),
                                   [](const Operator& op) { return std::holds_alternative<Matmul>(op.work); });
    layer.unread_tail = at_index(last - layer.forward.rbegin()) + 1;
  }
  tensor_collectives(layer, 2);
  std::reverse(layer.backward.begin(), layer.backward.end());
  set_block_memory(layer);
  const TransformerCounts n = transformer_counts(config_);
  const double t = options_.tensor;
  layer.expert_parameters = n.experts / t / options_.expert;
  layer.parameters = n.attention / t + n.ffn / t + layer.expert_parameters + n.norms;
  return layer;
}

Layer BlockBuilder::embedding() const {
  const auto& c = config_;
  Layer layer;
  layer.name = "embedding";
  layer.recomputable = false;
  const double t = options_.tensor;
  const auto width = number(tokens_ * c.hidden);
  if (c.family == TransformerFamily::vit) {
    linear(layer, "patch projection", tokens_, c.hidden / options_.tensor, 3 * c.patch_size * c.patch_size,
           activations_);
  } else {
    // Forward gathers a row a token and adds positions; backward scatters the gradients back.
    stream(layer, "embedding", StreamingKind::gather, width, has_learned_positions(c.family) ? 2 : 1, 1, 1, 2, 2);
    if (options_.tensor > 1) {
      layer.forward_collectives.push_back(
          {LayerCollective::Kind::all_reduce, LayerCollective::Group::tensor, element_ * width, 1, false});
    }
  }
  if (plain() && c.family == TransformerFamily::bert) norm(layer, "embedding norm");
  if (plain() && c.vocabulary > 0) {
    const auto numbers = number(c.vocabulary * c.hidden) / t;
    append_streams(layer, "embedding table", plain_table_gradient(c.tied_embeddings), numbers, activations_);
  }
  if (has_dropout(c.family)) residual(layer, "embedding dropout");
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
  norm(layer, "final norm");
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
  linear(layer, "logits", rows, columns, c.hidden, activations_);
  // Cross-entropy in fp32, one kernel a step as trainers run it eagerly: logits are widened (read e, write 4), each
  // row's maximum and sum are found (read 4), and log-probabilities written (read 4, write 4); backward, the one-hot
  // gradient is written (4), combined with the probabilities (read 8, write 4) and narrowed (read 4, write e).
  const auto logits = number(rows * columns);
  if (c.family == TransformerFamily::bert) separate_bias(layer, "logits bias", logits);
  const double wide = 4.0 / element_.value();
  stream(layer, "cross-entropy", StreamingKind::reduction, logits, 1 + 2 * wide, 2 * wide, 3 * wide, 2 * wide + 1, 3);
  if (t > 1) {
    const Bytes size = element_ * number(tokens_ * c.hidden);
    using Kind = LayerCollective::Kind;
    constexpr auto group = LayerCollective::Group::tensor;
    if (options_.sequence_parallel) {
      layer.forward_collectives.push_back({Kind::all_gather, group, size, 1, false});
      layer.backward_collectives.push_back({Kind::reduce_scatter, group, size, 1, false});
    } else {
      layer.backward_collectives.push_back({Kind::all_reduce, group, size, 1, false});
    }
    // row maximum, sum of exponentials and target logit of each token
    layer.forward_collectives.push_back({Kind::all_reduce, group, Bytes(4.0 * number(rows)), 3, false});
  }
  std::reverse(layer.backward.begin(), layer.backward.end());
  layer.parameters = transformer_counts(c).head / number(t);
  layer.matrices = head_matrices(c, options_.tensor);
  set_head_memory(layer, rows, columns);
  return layer;
}

Model build_transformer(const TransformerConfig& config, const std::string& name, const BuildOptions& options,
                        const TowerOptions& tower) {
  const auto built = [&](Gradients gradients, auto make) {
    const BlockBuilder build(config, options, gradients == Gradients::all);
    Layer layer = make(build);
    if (gradients == Gradients::inputs) hold_weights(layer);
    if (gradients == Gradients::none) forward_only(layer);
    return layer;
  };
  Model model;
  model.name = name;
  model.layers.push_back({built(tower.embedding, [](const BlockBuilder& b) { return b.embedding(); }), 1});
  Layer block = built(tower.blocks, [](const BlockBuilder& b) { return b.block(); });
  if (tower.blocks == Gradients::inputs) {
    const std::int64_t tokens = BlockBuilder(config, options).tokens();
    adapt_frozen_block(block, tower.lora, config,
                       {tokens, options.tensor, options.sequence_parallel, storage_precision(options.precision)});
  }
  model.layers.push_back({std::move(block), static_cast<int>(config.layers)});
  if (!tower.headless) {
    model.layers.push_back({built(tower.head, [](const BlockBuilder& b) { return b.head(); }), 1});
  }
  model.parameters = transformer_parameters(config) - (tower.headless ? transformer_counts(config).head : 0.0);

  Flops forward;
  for (const LayerGroup& group : model.layers) {
    for (const Operator& op : group.layer.forward) {
      if (!std::holds_alternative<Streaming>(op.work)) forward += flops(op) * number(group.repeat);
    }
  }
  // Per rank and micro-batch → whole model and one sample. Work divided over t, context and expert ranks adds up again.
  const double ranks = number(options.tensor) * options.context;
  model.forward_flops_per_sample = forward * (ranks / number(options.micro_batch));
  model.tokens_per_sample = config.family == TransformerFamily::vit ? 0.0 : number(config.sequence);
  model.input_bytes_per_sample = config.family == TransformerFamily::vit
                                     ? Bytes(12.0 * number(config.image_size * config.image_size))
                                     : Bytes(8.0 * number(config.sequence));
  return model;
}

}  // namespace foretrain
