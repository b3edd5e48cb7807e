// Frozen parts and low-rank adapters: which gradients are computed, what is held, and what is kept for them.
#include "model/workload/training_parts.hpp"

#include "model/workload/transformer_parameters.hpp"
#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

Model build(const std::string& name, const TrainedParts& parts) {
  BuildOptions options;
  options.parts = parts;
  return build_model(preset(name), options);
}

const Layer& layer(const Model& model, const std::string& name) {
  for (const LayerGroup& group : model.layers) {
    if (group.layer.name == name) return group.layer;
  }
  throw std::logic_error("no layer " + name);
}

double trained(const Model& model) {
  double sum = 0.0;
  for (const LayerGroup& group : model.layers) sum += group.layer.parameters * group.repeat;
  return sum;
}

double held(const Model& model) {
  double sum = 0.0;
  for (const LayerGroup& group : model.layers) sum += group.layer.frozen_parameters * group.repeat;
  return sum;
}

double matrix_flops(const std::vector<Operator>& ops) {
  double sum = 0.0;
  for (const Operator& op : ops) sum += std::holds_alternative<Matmul>(op.work) ? flops(op).value() : 0.0;
  return sum;
}

}  // namespace

TEST_CASE("which gradients each part needs") {
  // Vision frozen: nothing before it is trained, so it has no backward pass. The projector behind it is trained, so
  // that a frozen language model still hands gradients of its inputs back.
  TrainedParts parts;
  parts.vision_frozen = parts.embedding_frozen = parts.blocks_frozen = parts.head_frozen = true;
  PartGradients gradients = gradients_of(parts, true);
  CHECK(gradients.vision == Gradients::none);
  CHECK(gradients.projector == Gradients::all);
  CHECK(gradients.embedding == Gradients::none);
  CHECK(gradients.blocks == Gradients::inputs);
  CHECK(gradients.head == Gradients::inputs);
  // With the vision encoder trained a frozen projector is passed through.
  parts = {};
  parts.projector_frozen = true;
  CHECK(gradients_of(parts, true).projector == Gradients::inputs);
  // Only the head of a language model alone: no backward pass of what lies before it.
  parts = {};
  parts.embedding_frozen = parts.blocks_frozen = true;
  gradients = gradients_of(parts, false);
  CHECK(gradients.blocks == Gradients::none);
  CHECK(gradients.head == Gradients::all);
  // Adapters freeze the language model and are trained inside of its blocks.
  parts = {};
  parts.lora = Lora{};
  gradients = gradients_of(parts, false);
  CHECK(gradients.embedding == Gradients::none);
  CHECK(gradients.blocks == Gradients::inputs);
  CHECK(gradients.head == Gradients::inputs);
}

TEST_CASE("adapters of Llama 2 7B: rank · (in + out) for each matrix") {
  const auto llama = std::get<TransformerConfig>(preset("llama2-7b").shape);
  // Attention: four matrices of 4096 × 4096: 4 · 16 · 8192. Feed-forward: three of 4096 × 11008: 3 · 16 · 15104.
  // All of them in 32 blocks: 39,976,960, what the peft library prints for rank 16 on all linear layers.
  Lora lora;
  CHECK(lora_parameters(lora, llama) == 4 * 16 * 8192 + 3 * 16 * 15104);
  CHECK(32 * lora_parameters(lora, llama) == 39'976'960);
  lora.ffn = false;
  CHECK(lora_parameters(lora, llama) == 4 * 16 * 8192);
  // Grouped queries: keys and values of Mistral are 1024 wide.
  const auto mistral = std::get<TransformerConfig>(preset("mistral-7b").shape);
  CHECK(lora_parameters(lora, mistral) == 2 * 16 * 8192 + 2 * 16 * 5120);
  // Over two ranks the divided side of each matrix is half as long: 3 · (4096 + 2048) and (2048 + 4096).
  CHECK(lora_parameters(lora, llama, 2) == 4 * 16 * (4096 + 2048));

  // Beside queries, keys and values as one product there is one A of 16 × 4096, and a B of 16 × 3 · 4096.
  CHECK(lora_parameters({16, false, false, true}, llama) == 16 * (4096 + 3 * 4096));
  CHECK(lora_parameters({16, false, false, true}, mistral) == 16 * (4096 + 4096 + 2 * 1024));

  TrainedParts parts;
  parts.lora = Lora{};
  const Model adapted = build("llama2-7b", parts);
  CHECK(trained(adapted) == 39'976'960);
  CHECK(held(adapted) == Approx(6'738'415'616.0).epsilon(1e-9));
  CHECK(adapted.parameters == Approx(6'738'415'616.0).epsilon(1e-9));
}

TEST_CASE("arithmetic of a block with adapters") {
  const Layer whole = layer(build("llama2-7b", {}), "transformer block");
  TrainedParts parts;
  parts.lora = Lora{};
  const Layer adapted = layer(build("llama2-7b", parts), "transformer block");
  // Forward: two thin products beside each matrix, 2 · tokens · adapter parameters.
  const double thin = 2.0 * 4096 * lora_parameters(Lora{}, std::get<TransformerConfig>(preset("llama2-7b").shape));
  CHECK(matrix_flops(adapted.forward) == Approx(matrix_flops(whole.forward) + thin));
  // Backward: the frozen matrices' data gradients alone, half of before, and both gradients of A and B.
  CHECK(matrix_flops(adapted.backward) == Approx(0.5 * matrix_flops(whole.backward) + 2.0 * thin));
}

TEST_CASE("a frozen block keeps what its data gradients need, and no more") {
  const Layer whole = layer(build("llava-1.5-7b", {}), "transformer block");
  TrainedParts parts;
  parts.embedding_frozen = parts.blocks_frozen = parts.head_frozen = true;
  const Layer frozen = layer(build("llava-1.5-7b", parts), "transformer block");
  // 2048 tokens of 2 bytes: the outputs of two norms (4096 each) and the input of the last product (11008).
  CHECK(whole.kept().value() - frozen.kept().value() == Approx(2.0 * 2048 * (2 * 4096 + 11008)));
  // Recomputed norms and activations were not kept to begin with.
  for (const Recompute way : {Recompute::selective_operators, Recompute::selective_modules, Recompute::full}) {
    CHECK(frozen.kept(way) == whole.kept(way));
  }
  CHECK(frozen.parameters == 0.0);
  CHECK(frozen.frozen_parameters == whole.parameters);
  CHECK(frozen.matrices.empty());
  // Adapters beside all matrices need those inputs, and keep tokens · rank numbers each.
  parts.lora = Lora{};
  const Layer adapted = layer(build("llava-1.5-7b", parts), "transformer block");
  CHECK(adapted.kept().value() - whole.kept().value() == Approx(7 * 2.0 * 2048 * 16));
}

TEST_CASE("of adapters beside the last product, what comes after the inner result is read by no gradient") {
  TrainedParts parts;
  parts.embedding_frozen = parts.blocks_frozen = parts.head_frozen = true;
  const Layer frozen = layer(build("llava-1.5-7b", parts), "transformer block");
  parts.lora = Lora{};
  const Layer adapted = layer(build("llava-1.5-7b", parts), "transformer block");
  // The way up and the sum join the block's own tail.
  CHECK(adapted.unread_tail == frozen.unread_tail + 2);
  const auto tail = adapted.forward.end() - static_cast<std::ptrdiff_t>(adapted.unread_tail);
  CHECK(std::count_if(tail, adapted.forward.end(), [](const Operator& op) { return op.name == "ffn down"; }) == 1);
  for (const char* name : {"ffn down adapter B", "ffn down adapter sum"}) {
    CHECK(std::count_if(tail, adapted.forward.end(), [&](const Operator& op) { return op.name == name; }) == 1);
  }
}

TEST_CASE("a frozen encoder runs forward only") {
  TrainedParts parts;
  parts.vision_frozen = true;
  const Model whole = build("llava-1.5-7b", {});
  const Model frozen = build("llava-1.5-7b", parts);
  for (const char* name : {"vision embedding", "vision transformer block"}) {
    INFO(name);
    const Layer& part = layer(frozen, name);
    CHECK(part.forward == layer(whole, name).forward);
    CHECK(part.backward.empty());
    CHECK(part.kept().value() == 0.0);
    CHECK(part.kept(Recompute::full).value() == 0.0);
    // Nothing to run again where there is no backward pass.
    CHECK_FALSE(part.recomputable);
  }
  // The projector's first layer has no input that needs a gradient: one product of 576 × 1024 × 4096 less.
  const double difference =
      matrix_flops(layer(whole, "projector").backward) - matrix_flops(layer(frozen, "projector").backward);
  CHECK(difference == 2.0 * 576 * 1024 * 4096);
  CHECK(trained(frozen) + held(frozen) == Approx(frozen.parameters));
}

TEST_CASE("only the output layer trained: blocks have no backward pass") {
  TrainedParts parts;
  parts.embedding_frozen = parts.blocks_frozen = true;
  const Model model = build("llama2-7b", parts);
  CHECK(layer(model, "transformer block").backward.empty());
  CHECK_FALSE(layer(model, "head").backward.empty());
  CHECK(trained(model) == 32000.0 * 4096 + 4096);
}

TEST_CASE("quantised weights are stored short and made long before each product") {
  // nf4 takes half a byte, and a byte for each 64 numbers with an fp32 scale for 256 of these bytes; or, not doubly
  // quantised, an fp32 scale for each 64.
  FrozenWeights stored{FrozenWeights::Format::nf4};
  CHECK(stored.size().value() == Approx(0.5 + (1.0 + 4.0 / 256) / 64));
  stored.doubly = false;
  CHECK(stored.size().value() == Approx(0.5 + 4.0 / 64));

  // Llama 2 7B: 4 matrices of 4096 x 4096 and 3 of 4096 x 11008 a block, in four products (queries, keys and values in
  // one; gate and up in one). Each is read in 0.5625 bytes and written in 2, once in either pass.
  TrainedParts parts;
  parts.lora = Lora{};
  const Layer whole = layer(build("llama2-7b", parts), "transformer block");
  parts.quantised = stored;
  const Model model = build("llama2-7b", parts);
  const Layer& block = layer(model, "transformer block");
  const double numbers = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008;
  for (const auto& [ops, before] :
       {std::pair(block.forward, whole.forward), std::pair(block.backward, whole.backward)}) {
    CHECK(ops.size() == before.size() + 4);
    double traffic = 0.0;
    for (const Operator& op : ops) {
      if (op.name.ends_with("dequantisation")) traffic += minimum_traffic(op).value();
    }
    CHECK(traffic == Approx(numbers * (0.5625 + 2.0)));
  }
  CHECK(block.frozen_share == Approx(0.5625 / 2.0));
  CHECK((block.workspace - whole.workspace).value() == Approx(2.0 * 4096 * 2 * 11008));  // gate and up are the largest
  // Other layers are kept in fp32.
  CHECK(layer(model, "embedding").frozen_share == Approx(2.0));

  // In 8 bits inputs are cast and outputs scaled in the forward pass, and weights are made long in the backward pass.
  parts.quantised.weights = FrozenWeights::Format::int8;
  const Model eight_bits = build("llama2-7b", parts);
  const auto has = [&](const std::vector<Operator>& ops, const char* what) {
    return std::ranges::count_if(ops, [&](const Operator& op) { return op.name.ends_with(what); });
  };
  CHECK(has(layer(eight_bits, "transformer block").forward, "cast and scaling") == 4);
  CHECK(has(layer(eight_bits, "transformer block").forward, "dequantisation") == 0);
  CHECK(has(layer(eight_bits, "transformer block").backward, "dequantisation") == 4);
}
