// Mamba-2 layers and hybrid models: parameters, operations and bytes by hand.
#include "model/workload/transformer.hpp"
#include "model/workload/transformer_parameters.hpp"
#include "tests/workload/models.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

/// The widths of Nemotron-H 8B.
TransformerConfig hybrid(std::vector<LayerKind> pattern) {
  TransformerConfig c = transformer(TransformerFamily::llama, {0, 4096, 32, 8, 21504, 131072, 8192});
  c.layers = static_cast<std::int64_t>(pattern.size());
  c.pattern = std::move(pattern);
  c.gated_ffn = false;
  c.mamba = {.heads = 128, .head_dim = 64, .state = 128, .groups = 8, .kernel = 4, .chunk = 128};
  return c;
}

constexpr double tokens = 8192, h = 4096;

}  // namespace

TEST_CASE("a Mamba-2 layer projects to gate, inputs, B, C and steps, and back") {
  // 128 heads of 64 are 8,192 wide; B and C are 8 groups of 128 each. Projection 4096 x (8192 + 8192 + 2 · 1024 + 128),
  // back 8192 x 4096; four taps and a bias for each of 10,240 convolved channels; three numbers a head; the gated
  // norm's 8,192 and the layer's 4,096 scales.
  const TransformerConfig c = hybrid({LayerKind::mamba});
  const double weights = h * (8192 + 8192 + 2048 + 128) + 8192 * h;
  const TransformerCounts n = transformer_counts(c, LayerKind::mamba);
  CHECK(n.mamba == weights + 10240 * 5 + 3 * 128 + 8192);
  CHECK(n.norms == h);
  CHECK(n.attention + n.ffn + n.experts == 0.0);
}

TEST_CASE("the state-space duality multiplies four times a chunk") {
  // Chunks of 128 tokens. Per token: scores 128 · 128 for each of 8 groups; what they read 128 · 64, states and what C
  // reads 64 · 128 each, for each of 128 heads. Two operations each.
  const TransformerConfig c = hybrid({LayerKind::mamba});
  const Layer layer = block_of(c);
  const double duality = 2.0 * (8 * 128 * 128 + 3.0 * 128 * 64 * 128);
  const double linear = 2.0 * (h * 18560 + 8192 * h);
  CHECK(product_flops(layer.forward) == Approx(tokens * (linear + duality)));
  // Backward twice that, and scores and states once more.
  const double again = 2.0 * (8 * 128 * 128 + 128 * 64 * 128);
  CHECK(product_flops(layer.backward) == Approx(tokens * (2.0 * (linear + duality) + again)));
  // 64 chunks of 8 groups leave states of 128 x 1024 numbers in fp32, read and written once.
  CHECK(minimum_traffic(named(layer.forward, "state passing")).value() == 2.0 * 4.0 * 64 * 8 * 128 * 1024);
  // The convolution reads and writes 10,240 numbers of 2 bytes a token; four taps of two operations.
  const Operator& convolution = named(layer.forward, "causal convolution");
  CHECK(minimum_traffic(convolution).value() == 2.0 * 2.0 * tokens * 10240);
  CHECK(flops(convolution).value() == 8.0 * tokens * 10240);
  // Backward it reads the inputs again, for the taps' gradients, which are as much arithmetic again.
  const Operator& back = named(layer.backward, "causal convolution backward");
  CHECK(minimum_traffic(back).value() == 3.0 * 2.0 * tokens * 10240);
  CHECK(flops(back).value() == 16.0 * tokens * 10240);
}

TEST_CASE("tensor ranks divide heads and groups") {
  BuildOptions options;
  options.tensor = 4;
  const Layer layer = block_of(hybrid({LayerKind::mamba}), options);
  CHECK(product(layer.forward, "mamba input projection").n == 18560 / 4);
  CHECK(product(layer.forward, "mamba output projection").k == 8192 / 4);
  CHECK(product(layer.forward, "chunk scores").batch == 64 * 2);
  REQUIRE(layer.forward_collectives.size() == 1);
  CHECK(layer.forward_collectives[0].count == 1);  // one all-reduce a layer, a block has two
}

TEST_CASE("a hybrid's layers stand alone: halves of blocks add up to blocks") {
  using enum LayerKind;
  const Model model =
      build_transformer(hybrid({mamba, feed_forward, mamba, feed_forward, attention, feed_forward}), "hybrid", {});
  REQUIRE(model.layers.size() == 8);  // embedding, six layers of which no two neighbours are alike, head
  const Layer& attends = model.layers[5].layer;
  const Layer& feeds = model.layers[6].layer;
  const Layer whole = block_of(hybrid({block}));
  CHECK(product_flops(attends.forward) + product_flops(feeds.forward) == Approx(product_flops(whole.forward)));
  CHECK(attends.parameters + feeds.parameters == whole.parameters);
  CHECK(attends.name == "attention layer");
  CHECK(model.layers[2].layer == feeds);
}

TEST_CASE("a hybrid's parameters are those of its layers, whatever their order") {
  using enum LayerKind;
  const TransformerConfig c = hybrid({mamba, feed_forward, mamba, attention});
  const TransformerCounts ends = transformer_counts(c), m = transformer_counts(c, mamba);
  const TransformerCounts f = transformer_counts(c, feed_forward), a = transformer_counts(c, attention);
  const double layers = 2.0 * m.mamba + f.ffn + a.attention + 4.0 * h;  // and the scales of a norm each
  CHECK(transformer_parameters(c) == ends.embedding + layers + ends.head);
  double built = 0.0;
  for (const LayerGroup& group : build_transformer(c, "hybrid", {}).layers) {
    built += static_cast<double>(group.repeat) * group.layer.parameters;
  }
  CHECK(built == transformer_parameters(c));
}

TEST_CASE("the last chunk of a sequence may be short") {
  const auto chunks = [](std::int64_t sequence) {
    TransformerConfig c = hybrid({LayerKind::mamba});
    c.sequence = sequence;
    return product(block_of(c).forward, "chunk scores").batch / 8;  // groups
  };
  CHECK(chunks(1024) == 8);
  CHECK(chunks(1025) == 9);
  CHECK(chunks(1151) == 9);
  CHECK(chunks(1152) == 9);
}

TEST_CASE("a Mamba-2 layer's convolution, steps and states are kernels that no compiler merges") {
  const Layer layer = block_of(hybrid({LayerKind::mamba}));
  for (const char* name : {"state passing", "causal convolution"}) {
    CHECK_FALSE(loop(layer.forward, name).fusible);
  }
}

TEST_CASE("Samples of a Mamba-2 layer are put apart for its kernels, unless there is one") {
  // Two samples of 8,192 tokens: 18,560 numbers of the projection and 8,192 of the scan, 2 bytes each, read and
  // written.
  BuildOptions options;
  options.micro_batch = 2;
  const Layer two = block_of(hybrid({LayerKind::mamba}), options);
  CHECK(minimum_traffic(named(two.forward, "samples apart")).value() == 2.0 * 2.0 * 2.0 * tokens * 18560);
  CHECK(minimum_traffic(named(two.backward, "samples together backward")).value() == 2.0 * 2.0 * 2.0 * tokens * 8192);
  const Layer one = block_of(hybrid({LayerKind::mamba}));
  CHECK(two.forward.size() == one.forward.size() + 2);
}
