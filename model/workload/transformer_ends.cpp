// Layers before, between and behind a transformer's blocks: embedding, the norm of an encoder's result, modules
// that predict further tokens.

#include <algorithm>

#include "model/base/number.hpp"
#include "model/workload/block_builder.hpp"
#include "model/workload/plain_kernels.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

template <typename T>
void append(std::vector<T>& list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

Layer BlockBuilder::embedding() const {
  const auto& c = config_;
  Layer layer;
  layer.name = "embedding";
  layer.recomputable = false;
  const double t = options_.tensor;
  const auto width = number(tokens_ + options_.micro_batch * c.decoder_sequence) * number(c.hidden);
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

Layer BlockBuilder::encoder_norm() const {
  Layer layer;
  layer.name = "encoder norm";
  layer.recomputable = false;
  const std::int64_t readers = config_.decoder_layers;
  const auto width = norm_tokens() * number(config_.hidden);
  norm(layer, layer.name, static_cast<int>(joins_queries() ? readers : 2 * readers));
  if (stream_ == element_) {  // else summed up where the casts hand it back
    layer.backward.push_back(streaming_operator("sum of decoder gradients", StreamingKind::elementwise,
                                                width * number(readers), 2, 1, activations_,
                                                static_cast<int>(readers)));
  }
  std::reverse(layer.backward.begin(), layer.backward.end());
  layer.parameters = norm_parameters(config_);
  layer.recomputation.keep(element_ * (2.0 * width));
  layer.output = element_ * (number(tokens_) * number(config_.hidden));
  return layer;
}

// Prediction of further tokens (DeepSeek-AI 2024, arXiv 2412.19437, section 2.2; Megatron-Core,
// multi_token_prediction.py). The next token's embedding and the last layer's state, both normed and side by side, are
// projected to one state, which passes a block of its own and the shared output layer with its loss. A pipeline counts
// it as a layer of that weight, behind all others.
Layer BlockBuilder::further_token() const {
  const auto& c = config_;
  Layer before;
  stream(before, "embedding of the next token", StreamingKind::gather, number(tokens_) * number(c.hidden), 1, 1, 1, 2);
  norm(before, "embedding norm");
  norm(before, "state norm");
  const std::int64_t outputs = c.hidden / options_.tensor;
  block_linear(before, "projection of both", tokens_, outputs, 2 * c.hidden, true);

  const Layer after = head();
  Layer layer = block();
  layer.name = "further token";
  layer.unread_tail = 0;
  layer.forward.insert(layer.forward.begin(), before.forward.begin(), before.forward.end());
  append(layer.forward, after.forward);
  layer.backward.insert(layer.backward.begin(), after.backward.begin(), after.backward.end());
  layer.backward.insert(layer.backward.end(), before.backward.rbegin(), before.backward.rend());
  append(layer.forward_collectives, after.forward_collectives);
  append(layer.backward_collectives, after.backward_collectives);
  layer.matrices.insert(layer.matrices.begin(), WeightMatrix{outputs, 2 * c.hidden});
  const double norms = 3.0 * number(c.hidden);  // they scale embedding, state and what goes to the output layer
  layer.parameters += number(outputs) * 2.0 * number(c.hidden) + norms;
  layer.recomputation.keep(element_ * norm_tokens() * (4.0 * number(c.hidden)) + after.kept());
  layer.loss_kept = after.loss_kept;
  layer.loss_buffers = after.loss_buffers;
  return layer;
}

}  // namespace foretrain
