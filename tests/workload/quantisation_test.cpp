// Operands of linear layers in formats shorter than 16 bits: copies, scales and what is left alone, by hand.
#include "model/workload/quantisation.hpp"

#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

Model build(Precision precision, const QuantisationRecipe& recipe = {}, double passes = 1.0) {
  BuildOptions options;
  options.precision = precision;
  options.recipe = recipe;
  options.passes_per_cast = passes;
  return build_transformer(transformer(TransformerFamily::llama, {8, 1024, 8, 8, 4096, 32000, 2048}), "llama", options);
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

TEST_CASE("what casts of a block read and write, by format and recipe") {
  struct Row {
    Precision precision;
    Fp8Scaling scaling;
    double passes, forward, backward;
  };
  using enum Fp8Scaling;
  const double blocks = 2.0 + 2.0 * (1.0 + 4.0 / 128.0), block_weight = 2.0 + 2.0 * (1.0 + 4.0 / 16384.0);
  const double mxfp8 = 2.0 + 2.0 * 33.0 / 32.0;
  const Row rows[] = {
      // Norms write fp8; the inputs of attention's output and of the way down read 2 and write 2 · 1 bytes.
      {Precision::fp8, delayed, 1.0, 4.0 * tokens * (h + f), 4.0 * results},
      // Every tensor is read once more, for its largest value.
      {Precision::fp8, current, 1.0, 6.0 * (inputs + weights), 6.0 * results},
      // Four bytes for 128 elements of each copy; weights are cast once a step of 16 passes.
      {Precision::fp8, Fp8Scaling::block, 16.0, blocks * inputs + block_weight * weights / 16.0, blocks * results},
      // A pass of two bytes for each copy of one, weights' too.
      {Precision::fp8, row, 1.0, 6.0 * (inputs + weights), 6.0 * results},
      // bf16 is read once, two copies are written with their scales.
      {Precision::mxfp8, delayed, 1.0, mxfp8 * (inputs + weights), mxfp8 * results},
      // Read for the largest values, for the rows, and for the transformed columns: 6 bytes, 2 · 9/16 written; weights
      // are not transformed: 4 bytes read.
      {Precision::nvfp4, delayed, 1.0, 7.125 * inputs + 5.125 * weights, 7.125 * results}};
  for (const Row& row : rows) {
    QuantisationRecipe recipe;
    recipe.scaling = row.scaling;
    INFO(name(row.precision) << " " << name(row.scaling));
    const Layer built = build(row.precision, recipe, row.passes).layers[1].layer;
    CHECK(cast_bytes(built.forward) == Approx(row.forward));
    CHECK(cast_bytes(built.backward) == Approx(row.backward));
  }
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
