// The output layer of a transformer with its loss, at once or in parts.

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <variant>

#include "model/base/number.hpp"
#include "model/workload/block_builder.hpp"
#include "model/workload/plain_kernels.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

namespace {

// BERT predicts the masked 15 % of the tokens only (Devlin et al. 2018, section 3.1); the others reach no output layer.
constexpr double masked_share = 0.15;

// The products of the layer `name` are launched once for each part of the tokens, and what parts give for the weights
// is added up by a kernel of its own (autograd; Liger).
void repeat_products(Layer& layer, const std::string& name, int parts) {
  for (std::vector<Operator>* pass : {&layer.forward, &layer.backward}) {
    for (Operator& op : *pass) {
      auto* product = std::get_if<Matmul>(&op.work);
      if (product == nullptr || !op.name.starts_with(name)) continue;
      product->batch = op.kernels = parts;
    }
  }
  const Operator& last = layer.backward.back();
  if (parts == 1 || last.name != name + " weight gradient") return;
  const auto& gradient = std::get<Matmul>(last.work);
  const double weights = number(gradient.m) * number(gradient.n) * (parts - 1);
  Operator sum =
      streaming_operator(name + " gradient sum", StreamingKind::elementwise, weights, 2, 1, last.precision, parts - 1);
  std::get<Streaming>(sum.work).fusible = false;
  layer.backward.insert(layer.backward.end() - 1, std::move(sum));  // a backward pass is built from its end
}

}  // namespace

std::int64_t BlockBuilder::loss_parts(std::int64_t rows, std::int64_t outputs) const {
  const Loss& loss = options_.code.loss;
  if (loss.kind == Loss::Kind::chunked) return std::min<std::int64_t>(loss.chunks, rows);
  if (loss.kind != Loss::Kind::fused_linear) return 1;
  const std::int64_t wider = std::max<std::int64_t>((outputs + config_.hidden - 1) / config_.hidden, 1);
  const auto each = static_cast<std::int64_t>(std::bit_ceil(at_index((rows + wider - 1) / wider)));
  return (rows + each - 1) / each;
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
  const Loss& loss = options_.code.loss;
  const bool fused = loss.fused(options_.compiled);
  const std::int64_t parts = loss_parts(rows, outputs);
  // Compilation block by block leaves the loss and its logits to the framework.
  linear(layer, "logits", (rows + parts - 1) / parts, columns, c.hidden, activations_, 1, false, fused);
  if (loss.in_parts()) repeat_products(layer, "logits", static_cast<int>(parts));
  // Fused, it reads logits twice (each row's maximum and sum in one pass, then the gradient, which takes their place)
  // and the backward pass scales that (Transformer Engine, common/triton/cross_entropy.py; Liger,
  // ops/cross_entropy.py). Else cross-entropy in fp32, one kernel a step as trainers run it eagerly: logits are widened
  // (read e, write 4), each row's maximum and sum are found (read 4), and log-probabilities written (read 4, write 4).
  // Backward, the one-hot gradient is written (4), combined with the probabilities (read 8, write 4) and narrowed (read
  // 4, write e).
  const auto own = number(rows) * number(columns);
  if (c.family == TransformerFamily::bert) separate_bias(layer, "logits bias", own);
  // Whole rows are joined from what the ranks sent (torch.cat), and every rank takes the loss of all of them; of its
  // gradient each copies its own columns.
  const bool gathers = t > 1 && options_.code.gather_logits;
  const double logits = gathers ? number(rows) * number(outputs) : own;
  if (gathers) {
    const auto copy = [&](const char* name, double elements) {
      return streaming_operator(name, StreamingKind::elementwise, elements, 1, 1, activations_);
    };
    layer.forward.push_back(copy("joined logits", logits));
    layer.backward.push_back(copy("joined logits backward", own));
  }
  const double wide = 4.0 / element_.value();
  Marker added(layer);
  if (shifts_logits()) stream(layer, "shifted logits", StreamingKind::elementwise, logits, 1, 1, 1, 2, 2);
  if (loss.kind == Loss::Kind::fused_linear) {  // gradients are ready, and scaled by one
    layer.forward.push_back(streaming_operator("cross-entropy", StreamingKind::reduction, logits, 2, 1, activations_,
                                               static_cast<int>(parts)));
  } else if (fused) {
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
    if (gathers) {
      layer.forward_collectives.push_back({all_gather, group, element_ * logits});
    } else {  // row maximum, sum of exponentials and target logit of each token
      layer.forward_collectives.push_back({all_reduce, group, Bytes(4.0 * number(rows)), 3});
    }
  }
  std::reverse(layer.backward.begin(), layer.backward.end());
  layer.parameters = transformer_counts(c).head / number(t);
  layer.matrices = head_matrices(c, options_.tensor);
  set_head_memory(layer, rows, columns);
  return layer;
}

}  // namespace foretrain
