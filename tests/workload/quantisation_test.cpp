// Operands of linear layers in formats shorter than 16 bits: copies, scales and what is left alone, by hand.
#include "model/workload/quantisation.hpp"

#include "model/workload/transformer.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

TransformerConfig small_llama() {
  TransformerConfig c;
  c.family = TransformerFamily::llama;
  c.layers = 8;
  c.hidden = 1024;
  c.heads = c.kv_heads = 8;
  c.head_dim = 128;
  c.ffn_hidden = 4096;
  c.vocabulary = 32000;
  c.sequence = 2048;
  c.gated_ffn = true;
  c.tied_embeddings = c.biases = false;
  return c;
}

Model build(Precision precision, const QuantisationRecipe& recipe = {}, double passes = 1.0) {
  BuildOptions options;
  options.precision = precision;
  options.recipe = recipe;
  options.passes_per_cast = passes;
  return build_transformer(small_llama(), "llama", options);
}

/// Bytes that casts of a block's forward (or backward) pass move.
double cast_bytes(const std::vector<Operator>& pass) {
  double sum = 0.0;
  for (const Operator& op : pass) {
    const bool casts = op.name.ends_with(" cast") || op.name.ends_with(" weight quantisation");
    if (casts) sum += minimum_traffic(op).value();
  }
  return sum;
}

constexpr double tokens = 2048, h = 1024, f = 4096;
// Inputs of a block's four products (query, key and value are one product, gate and up another) and their results.
constexpr double inputs = tokens * (h + h + h + f), results = tokens * (3 * h + h + 2 * f + h);
constexpr double weights = 3 * h * h + h * h + 2 * f * h + f * h;

}  // namespace

TEST_CASE("a block-scaled element takes its bits and its share of the scale") {
  // 8 bits and an eighth of a byte-wide scale for 32; 4 bits and a byte for 16.
  CHECK(bytes_per_element(Precision::mxfp8).value() == 33.0 / 32.0);
  CHECK(bytes_per_element(Precision::nvfp4).value() == 9.0 / 16.0);
  // A product of 256 x 512 by 512 x 128 reads 256 · 512 + 512 · 128 of these and writes 256 · 128 numbers in bf16.
  const Operator product{"", Matmul{.m = 256, .n = 128, .k = 512}, Precision::nvfp4, 1};
  CHECK(minimum_traffic(product).value() == (256 * 512 + 512 * 128) * 9.0 / 16.0 + 256 * 128 * 2.0);
}

TEST_CASE("delayed scaling: norms write fp8, the others are cast in one pass that writes two copies") {
  // Inputs behind norms are free; those of the attention's output and of the way down read 2 and write 2 · 1 bytes.
  const Layer block = build(Precision::fp8).layers[1].layer;
  CHECK(cast_bytes(block.forward) == 4.0 * tokens * (h + f));
  CHECK(cast_bytes(block.backward) == 4.0 * results);
}

TEST_CASE("current scaling reads every tensor once more, for its largest value") {
  QuantisationRecipe recipe;
  recipe.scaling = Fp8Scaling::current;
  const Layer block = build(Precision::fp8, recipe).layers[1].layer;
  CHECK(cast_bytes(block.forward) == 6.0 * (inputs + weights));
  CHECK(cast_bytes(block.backward) == 6.0 * results);
}

TEST_CASE("block scaling adds four bytes for 128 elements of each copy; weights are cast once a step") {
  QuantisationRecipe recipe;
  recipe.scaling = Fp8Scaling::block;
  const Layer block = build(Precision::fp8, recipe, 16.0).layers[1].layer;
  const double each = 2.0 + 2.0 * (1.0 + 4.0 / 128.0), of_weights = 2.0 + 2.0 * (1.0 + 4.0 / 16384.0);
  CHECK(cast_bytes(block.forward) == Approx(each * inputs + of_weights * weights / 16.0));
  CHECK(cast_bytes(block.backward) == Approx(each * results));
}

TEST_CASE("mxfp8 reads bf16 once and writes two copies with their scales") {
  const Layer block = build(Precision::mxfp8).layers[1].layer;
  CHECK(cast_bytes(block.forward) == Approx((2.0 + 2.0 * 33.0 / 32.0) * (inputs + weights)));
  CHECK(cast_bytes(block.backward) == Approx((2.0 + 2.0 * 33.0 / 32.0) * results));
}

TEST_CASE("nvfp4 reads thrice: for the largest values, for the rows, and for the transformed columns") {
  // 6 bytes read, 2 · 9/16 written; weights are not transformed: 4 bytes read.
  const Layer block = build(Precision::nvfp4).layers[1].layer;
  CHECK(cast_bytes(block.forward) == Approx(7.125 * inputs + 5.125 * weights));
  CHECK(cast_bytes(block.backward) == Approx(7.125 * results));
  CHECK(quantisation(Precision::nvfp4, {}, Operand::gradient, true).kernels == 3);
  // Frozen weights have no gradient, which alone reads along the columns: 4 bytes read, 9/16 written.
  CHECK(quantisation(Precision::nvfp4, {}, Operand::input, false).read == 4.0);
  CHECK(quantisation(Precision::nvfp4, {}, Operand::input, false).written == 9.0 / 16.0);
}

TEST_CASE("attention, norms, embedding and logits stay in bf16") {
  const Model model = build(Precision::nvfp4);
  for (const LayerGroup& group : model.layers) {
    for (const Operator& op : group.layer.forward) {
      INFO(group.layer.name << " " << op.name);
      const bool product = std::holds_alternative<Matmul>(op.work);
      CHECK((op.precision == Precision::nvfp4) == (product && group.layer.splittable));
    }
  }
}

TEST_CASE("blocks at either end may stay in bf16") {
  QuantisationRecipe recipe;
  recipe.first_bf16_layers = 1;
  recipe.last_bf16_layers = 3;
  const Model model = build(Precision::nvfp4, recipe);
  REQUIRE(model.layers.size() == 5);  // embedding, one block, four, three, head
  CHECK(model.layers[1].repeat == 1);
  CHECK(model.layers[2].repeat == 4);
  CHECK(model.layers[3].repeat == 3);
  CHECK(cast_bytes(model.layers[1].layer.forward) == 0.0);
  CHECK(cast_bytes(model.layers[2].layer.forward) > 0.0);
  CHECK(model.layers[3].layer == model.layers[1].layer);
  CHECK(model.forward_flops_per_sample == build(Precision::bf16).forward_flops_per_sample);
}
