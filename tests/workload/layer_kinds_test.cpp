// Windows, norms of queries and keys, and modules that predict further tokens, by hand.
#include "model/workload/transformer.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

TransformerConfig small() { return transformer(TransformerFamily::llama, {12, 1024, 8, 4, 4096, 32000, 8192}); }

double attention_flops(const LayerGroup& group) { return flops(named(group.layer.forward, "attention")).value(); }

}  // namespace

TEST_CASE("five of six layers see a window: the mean keys of a query count") {
  TransformerConfig c = small();
  c.window = 1024;
  c.full_attention_every = 6;
  const Model model = build_transformer(c, "windows", {});
  REQUIRE(model.layers.size() == 6);  // embedding, five, one, five, one, head
  CHECK(model.layers[1].repeat == 5);
  CHECK(model.layers[2].repeat == 1);
  CHECK(model.layers[3].layer == model.layers[1].layer);
  // Queries 1 to 1,024 see as many keys, the other 7,168 see 1,024; without a window query i sees i. Two products of
  // 128 elements, two operations each, 8 heads.
  const double windowed = 1024.0 * 1025 / 2 + 7168.0 * 1024, all = 8192.0 * 8193 / 2;
  CHECK(attention_flops(model.layers[1]) == Approx(4.0 * 128 * 8 * windowed));
  CHECK(attention_flops(model.layers[2]) == Approx(4.0 * 128 * 8 * all));
  const double saved = 10 * 4.0 * 128 * 8 * (all - windowed);
  CHECK(model.forward_flops_per_sample.value() ==
        Approx(build_transformer(small(), "all", {}).forward_flops_per_sample.value() - saved));
}

TEST_CASE("without full layers every layer sees the window") {
  TransformerConfig c = small();
  c.window = 1024;
  const Model model = build_transformer(c, "windows", {});
  REQUIRE(model.layers.size() == 3);
  CHECK(std::get<Attention>(named(model.layers[1].layer.forward, "attention").work).window == 1024);
}

TEST_CASE("norms of queries and keys read and write both once") {
  TransformerConfig c = small();
  c.qk_norm = true;
  const Layer layer = block_of(c);
  // 8 + 4 heads of 128 elements, read and written in 2 bytes; their scales are two vectors of 128.
  CHECK(minimum_traffic(named(layer.forward, "query-key norm")).value() == 2.0 * 2.0 * 8192 * 12 * 128);
  CHECK(layer.parameters - block_of(small()).parameters == 2.0 * 128);
  c.attention_sinks = true;
  CHECK(block_of(c).parameters - layer.parameters == 8.0);
  c.post_norms = true;
  CHECK(block_of(c).parameters - layer.parameters == 8.0 + 2.0 * 1024);
}

TEST_CASE("a module for a further token is a block, a projection of two states to one, and the output layer again") {
  TransformerConfig c = small();
  c.mtp_layers = 1;
  const Model model = build_transformer(c, "further", {});
  const Model without = build_transformer(small(), "", {});
  REQUIRE(model.layers.size() == 4);
  const Layer& module = model.layers[2].layer;
  CHECK(module.name == "further token");
  CHECK(module.splittable);  // a pipeline counts it as a layer
  const double block = flops(named(module.forward, "ffn up")).value();
  CHECK(block == flops(named(without.layers[1].layer.forward, "ffn up")).value());
  CHECK(flops(named(module.forward, "projection of both")).value() == 2.0 * 8192 * 2048 * 1024);
  CHECK(flops(named(module.forward, "logits")).value() == 2.0 * 8192 * 1024 * 32000);
  // Parameters of its own: the block, the projection and three norms; word table and output layer are shared.
  CHECK(module.parameters == without.layers[1].layer.parameters + 2048.0 * 1024 + 3.0 * 1024);
  // Published numbers are those of the model without it.
  CHECK(transformer_parameters(c) == transformer_parameters(small()));
}
