// What a network's kernels move and compare, and which a compiler merges.
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
    CHECK(traffic(more.forward, name).singles / traffic(one.forward, name).singles == Approx(5 * 4));
    const std::string back = std::string(name) + " gradient";
    CHECK(traffic(more.backward, back).singles / traffic(one.backward, back).singles == Approx(5 * 4));
  }
  // Some number of times each of 8 x 8 x 8 inputs; four comparisons for each of 4 x 4 x 8 outputs.
  CHECK(traffic(one.forward, "batch norm").singles > 512.0);
  CHECK(traffic(one.forward, "max pool").singles > 512.0);
  CHECK(traffic(one.forward, "max pool").operations().value() == 4 * 128);
  NetworkLayer flat = pool(Kind::max_pool, 2, 1);
  flat.kernel_w = 3;  // 7 x 6 x 8 outputs, six comparisons each
  CHECK(traffic(build({conv(8, 3, 1, 1), flat, flatten, linear(10)}, 3, 8).layers.front().layer.forward, "max pool")
            .operations()
            .value() == 6 * 7 * 6 * 8);
  // Statistics are two fp32 numbers a channel, read and written beside the maps.
  CHECK(traffic(one.forward, "batch norm").read.value() == 2 * 4 * 512 + 2 * 8 * 8);
  CHECK(traffic(one.forward, "batch norm").written.value() == 4 * 512 + 2 * 8 * 8);
  CHECK(traffic(one.backward, "batch norm gradient").read.value() == 4 * 4 * 512 + 2 * 8 * 8);
  CHECK(traffic(one.backward, "batch norm gradient").written.value() == 4 * 512 + 8 * 8);
}

TEST_CASE("Pooling and dropout move an index or a mask beside each number, a loss its labels") {
  NetworkLayer drop = simple(Kind::dropout);
  const Model model = build(
      {conv(8, 3, 1, 1), pool(Kind::max_pool, 2, 2), drop, simple(Kind::local_response_norm), flatten, linear(10)}, 3,
      8, 5);
  const Layer& layer = model.layers.front().layer;
  // Five maps of 8 x 8 x 8 fp32 numbers become 4 x 4 x 8, each with an index of 8 bytes.
  const double in = 5 * 512 * 4.0, numbers = 5 * 128, out = numbers * 4.0;
  CHECK(traffic(layer.forward, "max pool").read.value() == in);
  CHECK(traffic(layer.forward, "max pool").written.value() == out + numbers * 8);
  CHECK(traffic(layer.backward, "max pool gradient").read.value() == out + numbers * 8);
  CHECK(traffic(layer.backward, "max pool gradient").written.value() == in);
  CHECK(traffic(layer.forward, "dropout").read.value() == out);
  CHECK(traffic(layer.forward, "dropout").written.value() == out + numbers);
  CHECK(traffic(layer.backward, "dropout gradient").read.value() == out + numbers);
  CHECK(traffic(layer.backward, "dropout gradient").written.value() == out);
  CHECK(traffic(layer.backward, "local response norm gradient").read.value() == 3 * out);
  // Ten fp32 logits a sample, and an int64 label; the gradient reads and writes probabilities, and narrows them.
  const Layer& loss = model.layers.back().layer;
  const double logits = 5 * 10 * 4.0, labels = 5 * 8.0;
  CHECK(traffic(loss.forward, "softmax and cross-entropy").read.value() == logits + labels);
  CHECK(traffic(loss.forward, "softmax and cross-entropy").written.value() == logits);
  CHECK(traffic(loss.backward, "softmax and cross-entropy gradient").read.value() == 2 * logits + labels);
  CHECK(traffic(loss.backward, "softmax and cross-entropy gradient").written.value() == 2 * logits);
  CHECK(find(loss.forward, "softmax and cross-entropy").kernels == 2);
  CHECK(find(loss.backward, "softmax and cross-entropy gradient").kernels == 3);
  // In 2 bytes logits are widened first and gradients narrowed last.
  const Layer half = build({flatten, linear(10)}, 3, 8, 5, Precision::fp16).layers.back().layer;
  CHECK(find(half.forward, "softmax and cross-entropy").kernels == 3);
  CHECK(find(half.backward, "softmax and cross-entropy gradient").kernels == 4);
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
