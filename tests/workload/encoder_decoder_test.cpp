// Encoder–decoders: parameters against published counts; work, bytes and exchanges of a decoder's block by hand.
#include "model/workload/transformer.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

constexpr double h = 768, f = 3072, s = 512, d = 114;  // T5 base: widths, tokens of encoder and decoder

}  // namespace

TEST_CASE("T5's presets have the published numbers of parameters") {
  // Numbers of the checkpoints in transformers.
  const std::vector<std::pair<std::string, double>> published = {{"t5-base", 222'903'552},
                                                                 {"t5-large", 737'668'096},
                                                                 {"t5-3b", 2'851'598'336},
                                                                 {"t5-11b", 11'307'321'344},
                                                                 {"flan-t5-xl", 2'849'757'184}};
  for (const auto& [name, parameters] : published) {
    INFO(name);
    CHECK(transformer_parameters(transformer_preset(name)) == parameters);
    double sum = 0.0;  // of the layers, as they are built
    for (const LayerGroup& group : build_transformer(transformer_preset(name), name, {}).layers) {
      sum += group.layer.parameters * group.repeat;
    }
    CHECK(sum == parameters);
  }
}

TEST_CASE("a decoder attends to itself and to all that the encoder read") {
  // Encoder, a layer and a token: 2 · (4h² + 2hf), and 4·s·h over all s pairs of scores. Decoder: 2 · (6h² + 2hf) a
  // token of its own, queries and output of the second attention among them, 2 · 2h² a token of the encoder for its
  // keys and values; 4h a pair, d·(d + 1)/2 causal ones and d·s others. Logits: 2·h·V a token.
  const TransformerConfig t5 = transformer_preset("t5-base");
  const double encoder = s * 2 * (4 * h * h + 2 * h * f) + 4 * h * s * s;
  const double decoder = d * 2 * (6 * h * h + 2 * h * f) + s * 4 * h * h + 4 * h * (d * (d + 1) / 2 + d * s);
  const Model model = build_transformer(t5, "t5", {});
  CHECK(model.forward_flops_per_sample.value() == Approx(12 * (encoder + decoder) + 2 * d * h * 32128));
  CHECK(model.tokens_per_sample == s);
  for (const LayerGroup& group : model.layers) {
    CHECK(product_flops(group.layer.backward) == Approx(2 * product_flops(group.layer.forward)));
  }
}

TEST_CASE("a decoder's block keeps what both of its attentions read") {
  // Two bytes a number. Three norms' inputs and outputs and three masks of a byte: 3 · 5·h a token. Queries, keys,
  // values and result of the first attention 4h, queries and result of the second 2h, both sides of the activation 2f.
  // Keys and values of the encoder's tokens 2h each. Standard attention keeps softmax, mask and dropped softmax, 5
  // bytes for each of 12·d·(d + s) scores.
  BuildOptions options;
  options.attention = AttentionKind::standard;
  const Layer block = build_transformer(transformer_preset("t5-base"), "t5", options).layers[3].layer;
  REQUIRE(block.name == "decoder block");
  const double inputs = d * (15 * h + 2 * (6 * h + 2 * f)) + s * 2 * 2 * h;
  CHECK(block.kept(Recompute::none).value() == Approx(inputs + 5 * 12 * d * (d + s)));
  CHECK(block.kept(Recompute::selective).value() == Approx(inputs));
  CHECK(block.kept(Recompute::full).value() == Approx(2 * d * h));
  CHECK(block.output.value() == Approx(2 * (d + s) * h));  // the next stage attends to the encoder as well
}

TEST_CASE("tensor ranks add up three halves of a decoder's block, and the gradient of what the encoder read") {
  BuildOptions options;
  options.tensor = 4;
  const Model model = build_transformer(transformer_preset("t5-base"), "t5", options);
  const Layer& block = model.layers[3].layer;
  REQUIRE(block.forward_collectives.size() == 1);
  CHECK(block.forward_collectives[0].count == 3);
  REQUIRE(block.backward_collectives.size() == 2);
  CHECK(block.backward_collectives[1].size.value() == Approx(2 * s * h));
  CHECK(model.forward_flops_per_sample.value() ==
        Approx(build_transformer(transformer_preset("t5-base"), "t5", {}).forward_flops_per_sample.value()));
}
