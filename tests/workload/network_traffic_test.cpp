// Traffic of a network's kernels, and those that a compiler merges.
#include "tests/workload/networks.hpp"

using namespace foretrain;
using namespace foretrain::test;

TEST_CASE("Numbers that kernels take one at a time, and a window's comparisons, grow with batch and area") {
  const auto layer = [](std::int64_t batch, std::int64_t size) {
    return build({conv(8, 3, 1, 1), norm, pool(Kind::max_pool, 2, 2), flatten, linear(10)}, 3, size, batch)
        .layers.front()
        .layer;
  };
  const Layer one = layer(1, 8), more = layer(5, 16);
  // Five samples of four times the area.
  for (const char* name : {"batch norm", "max pool"}) {
    CHECK(loop(more.forward, name).singles / loop(one.forward, name).singles == Approx(5 * 4));
    const std::string back = std::string(name) + " gradient";
    CHECK(loop(more.backward, back).singles / loop(one.backward, back).singles == Approx(5 * 4));
  }
  // Some number of times each of 8 x 8 x 8 inputs; four comparisons for each of 4 x 4 x 8 outputs.
  CHECK(loop(one.forward, "batch norm").singles > 512.0);
  CHECK(loop(one.forward, "max pool").singles > 512.0);
  CHECK(loop(one.forward, "max pool").operations().value() == 4 * 128);
  NetworkLayer flat = pool(Kind::max_pool, 2, 1);
  flat.kernel_w = 3;  // 7 x 6 x 8 outputs, six comparisons each
  CHECK(loop(build({conv(8, 3, 1, 1), flat, flatten, linear(10)}, 3, 8).layers.front().layer.forward, "max pool")
            .operations()
            .value() == 6 * 7 * 6 * 8);
}

TEST_CASE("Pooling and dropout move an index or a mask beside each number, a loss its labels") {
  NetworkLayer drop = simple(Kind::dropout);
  const Model model = build(
      {conv(8, 3, 1, 1), pool(Kind::max_pool, 2, 2), drop, simple(Kind::local_response_norm), flatten, linear(10)}, 3,
      8, 5);
  const Layer& layer = model.layers.front().layer;
  // Five maps of 8 x 8 x 8 fp32 numbers become 4 x 4 x 8, each with an index of 8 bytes.
  const double in = 5 * 512 * 4.0, numbers = 5 * 128, out = numbers * 4.0;
  CHECK(moved(layer.forward, "max pool") == std::pair(in, out + numbers * 8));
  CHECK(moved(layer.backward, "max pool gradient") == std::pair(out + numbers * 8, in));
  CHECK(moved(layer.forward, "dropout") == std::pair(out, out + numbers));
  CHECK(moved(layer.backward, "dropout gradient") == std::pair(out + numbers, out));
  CHECK(loop(layer.backward, "local response norm gradient").read.value() == 3 * out);
  // Ten fp32 logits a sample, and an int64 label; the gradient reads and writes probabilities, and narrows them.
  const Layer& loss = model.layers.back().layer;
  const double logits = 5 * 10 * 4.0, labels = 5 * 8.0;
  CHECK(moved(loss.forward, "softmax and cross-entropy") == std::pair(logits + labels, logits));
  CHECK(moved(loss.backward, "softmax and cross-entropy gradient") == std::pair(2 * logits + labels, 2 * logits));
  CHECK(named(loss.forward, "softmax and cross-entropy").kernels == 2);
  CHECK(named(loss.backward, "softmax and cross-entropy gradient").kernels == 3);
  // In 2 bytes logits are widened first and gradients narrowed last.
  const Layer half = build({flatten, linear(10)}, 3, 8, 5, Precision::fp16).layers.back().layer;
  CHECK(named(half.forward, "softmax and cross-entropy").kernels == 3);
  CHECK(named(half.backward, "softmax and cross-entropy gradient").kernels == 4);
}

TEST_CASE("What a compiler merges into its neighbours maps numbers one by one") {
  const Model model = build({conv(8, 3, 1, 1), norm, relu, simple(Kind::dropout), pool(Kind::max_pool, 2, 2),
                             pool(Kind::average_pool, 2, 2), simple(Kind::local_response_norm), flatten, linear(10)},
                            3, 16, 5);
  for (const LayerGroup& group : model.layers) {
    for (const auto* pass : {&group.layer.forward, &group.layer.backward}) {
      for (const Operator& op : *pass) {
        const auto* streaming = std::get_if<Streaming>(&op.work);
        if (streaming == nullptr) continue;
        INFO(op.name);
        CHECK(streaming->fusible == (op.name.starts_with("relu") || op.name.starts_with("dropout")));
      }
    }
  }
}
