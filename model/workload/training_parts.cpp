#include "model/workload/training_parts.hpp"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// A matrix of a block with adapters beside it, on one tensor-parallel rank.
struct AdaptedMatrix {
  std::string name;
  std::int64_t outputs = 1, inputs = 1;
  bool is_last = false;  ///< of the block
};

std::vector<AdaptedMatrix> adapted_matrices(const Lora& lora, const TransformerConfig& c, int tensor) {
  const std::int64_t t = tensor;
  const std::int64_t q = c.heads * c.head_dim / t;
  const std::int64_t kv = std::max<std::int64_t>(c.kv_heads / t, 1) * c.head_dim;
  const std::int64_t f = c.ffn_hidden / t;
  std::vector<AdaptedMatrix> matrices;
  if (lora.qkv) {
    matrices = {{"qkv", q + 2 * kv, c.hidden}};
  } else if (lora.attention) {
    matrices = {
        {"query", q, c.hidden}, {"key", kv, c.hidden}, {"value", kv, c.hidden}, {"attention output", c.hidden, q}};
  }
  if (c.source > 0 && !matrices.empty()) {
    const std::vector<AdaptedMatrix> own = matrices;
    for (AdaptedMatrix matrix : own) {
      matrix.name = "cross-attention " + matrix.name;
      matrices.push_back(std::move(matrix));
    }
  }
  if (lora.ffn) {
    if (c.gated_ffn) matrices.push_back({"ffn gate", f, c.hidden});
    matrices.push_back({"ffn up", f, c.hidden});
    matrices.push_back({"ffn down", c.hidden, f, true});
  }
  return matrices;
}

/// y += x, for `elements` numbers.
Operator addition(const std::string& name, double elements, Precision precision) {
  const Bytes once = bytes_per_element(precision) * elements;
  return {name, Streaming{StreamingKind::elementwise, once * 2.0, once, Flops(elements), true}, precision, 1};
}

/// Adds the adapters' operators, parameters and the results of A, which their backward pass needs.
void add_lora(Layer& block, const Lora& lora, const TransformerConfig& config, const AdaptedBlock& shape) {
  const std::int64_t n = shape.tokens;
  const std::int64_t r = lora.rank;
  const Precision p = shape.precision;
  const auto product = [&](const std::string& name, const Matmul& work) { return Operator{name, work, p, 1}; };
  block.parameters += lora_parameters(lora, config, shape.tensor);
  for (const AdaptedMatrix& matrix : adapted_matrices(lora, config, shape.tensor)) {
    const std::string down = matrix.name + " adapter A";
    const std::string up = matrix.name + " adapter B";
    const std::int64_t in = matrix.inputs;
    const std::int64_t out = matrix.outputs;
    std::vector<Operator> forward = {product(down, linear_forward(n, r, in)), product(up, linear_forward(n, out, r)),
                                     addition(matrix.name + " adapter sum", number(n) * number(out), p)};
    if (shape.plain) {  // dropout of what A reads, with its mask, and B's result times the scale
      const double e = bytes_per_element(p).value(), read = number(n) * number(in),
                   scaled = e * number(n) * number(out);
      const auto pass = [&](const std::string& what, double from, double to) {
        return Operator{matrix.name + what,
                        Streaming{StreamingKind::elementwise, Bytes(from), Bytes(to), Flops(from), true}, p, 1};
      };
      forward.insert(forward.begin(), pass(" adapter dropout", e * read, (e + 1.0) * read));
      forward.insert(forward.end() - 1, pass(" adapter scaling", scaled, scaled));
      block.backward.push_back(pass(" adapter scaling backward", scaled, scaled));
      block.backward.push_back(pass(" adapter dropout backward", (e + 1.0) * read, e * read));
      block.recomputation.keep(Bytes((e + 1.0) * read));
    }
    // The backward pass reads A's result, but what comes of the last matrix enters a sum alone.
    if (matrix.is_last && block.unread_tail > 0) {
      const std::size_t read = shape.plain ? 2 : 1;
      block.unread_tail += forward.size() - read;
      block.forward.insert(block.forward.end(), forward.begin() + static_cast<std::ptrdiff_t>(read), forward.end());
      forward.resize(read);
    }
    block.forward.insert(block.forward.begin(), forward.begin(), forward.end());
    block.backward.push_back(product(up + " data gradient", linear_data_gradient(n, out, r)));
    block.backward.push_back(product(up + " weight gradient", linear_weight_gradient(n, out, r)));
    block.backward.push_back(product(down + " data gradient", linear_data_gradient(n, r, in)));
    block.backward.push_back(product(down + " weight gradient", linear_weight_gradient(n, r, in)));
    block.backward.push_back(addition(matrix.name + " adapter gradient sum", number(n) * number(in), p));
    block.matrices.push_back({r, in});
    block.matrices.push_back({out, r});
    const Bytes between = bytes_per_element(p) * (number(n) * number(r));  // A's result
    block.recomputation.keep(between);
  }
}

/// Kept for gradients of frozen weights alone, by ways of recomputation that drop neither norms nor activations.
Bytes unneeded_activations(const std::optional<Lora>& lora, const TransformerConfig& config,
                           const AdaptedBlock& shape) {
  const bool attention = lora && (lora->attention || lora->qkv);
  const bool ffn = lora && lora->ffn;
  const double routed = config.experts > 1 ? number(config.experts_per_token) : 1.0;
  const auto tokens = number(shape.tokens);
  const double norm = tokens / (shape.sequence_parallel ? shape.tensor : 1) * number(config.hidden);
  const double activated = tokens * routed * number(config.ffn_hidden) / shape.tensor;
  const double elements = (attention ? 0.0 : norm * (config.source > 0 ? 2.0 : 1.0)) + (ffn ? 0.0 : norm + activated);
  return bytes_per_element(shape.precision) * elements;
}

}  // namespace

PartGradients gradients_of(const TrainedParts& parts, bool with_vision) {
  const bool adapted = parts.lora.has_value();
  PartGradients gradients;
  bool trained_before = false;
  const auto decide = [&](bool frozen) {
    if (frozen) return trained_before ? Gradients::inputs : Gradients::none;
    trained_before = true;
    return Gradients::all;
  };
  if (with_vision) {
    gradients.vision = decide(parts.vision_frozen);
    gradients.projector = decide(parts.projector_frozen);
  }
  // The tables of words have no inputs that could have a gradient.
  const bool embedding_frozen = parts.embedding_frozen || adapted;
  gradients.embedding = embedding_frozen ? Gradients::none : Gradients::all;
  trained_before = trained_before || !embedding_frozen;
  if (adapted) trained_before = true;
  gradients.blocks = decide(parts.blocks_frozen || adapted);
  gradients.head = decide(parts.head_frozen || adapted);
  return gradients;
}

void hold_weights(Layer& layer) {
  layer.frozen_parameters += layer.parameters;
  layer.parameters = layer.expert_parameters = 0.0;
  layer.matrices.clear();
}

void forward_only(Layer& layer) {
  hold_weights(layer);
  layer.backward.clear();
  layer.backward_collectives.clear();
  layer.recomputation = {};
  layer.loss_kept = Bytes(0.0);
  layer.recomputable = false;
}

double lora_parameters(const Lora& lora, const TransformerConfig& config, int tensor) {
  double sum = 0.0;
  for (const AdaptedMatrix& matrix : adapted_matrices(lora, config, tensor)) {
    sum += number(lora.rank * (matrix.inputs + matrix.outputs));
  }
  return sum;
}

void adapt_frozen_block(Layer& block, const std::optional<Lora>& lora, const TransformerConfig& config,
                        const AdaptedBlock& shape) {
  const Bytes unneeded = unneeded_activations(lora, config, shape);
  for (const Recompute way : {Recompute::none, Recompute::selective}) block.recomputation[way].kept -= unneeded;
  if (lora) add_lora(block, *lora, config, shape);
}

void store_quantised(Layer& layer, const FrozenWeights& stored, Precision precision) {
  if (!stored.any()) return;
  const Bytes weight = bytes_per_element(precision);
  layer.frozen_share = (layer.splittable ? stored.size() : bytes_per_element(Precision::fp32)) / weight;
  double largest = 0.0;
  for (const Operator& op : layer.forward) {
    const auto* const product = std::get_if<Matmul>(&op.work);
    if (product != nullptr && layer.splittable) largest = std::max(largest, number(product->n) * number(product->k));
  }
  layer.workspace += weight * largest;
}

}  // namespace foretrain
