// Prediction of further tokens (DeepSeek-AI 2024, arXiv 2412.19437, section 2.2; Megatron-Core,
// multi_token_prediction.py): the next token's embedding and the last layer's state, both normed and side by side, are
// projected to one state, which passes a block of its own and the shared output layer with its loss. A pipeline counts
// it as a layer of that weight, behind all others.

#include <utility>

#include "model/base/number.hpp"
#include "model/workload/block_builder.hpp"

namespace foretrain {

namespace {

template <typename T>
void append(std::vector<T>& list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

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
