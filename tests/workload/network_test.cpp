// Networks built in code: shapes, operators, what is kept for the backward pass, and what does not fit.
#include "model/workload/network.hpp"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "model/base/error.hpp"
#include "tests/workload/networks.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

int count(const std::vector<Operator>& operators, const std::string& name) {
  return static_cast<int>(std::ranges::count_if(operators, [&](const Operator& op) { return op.name == name; }));
}

std::vector<NetworkLayer> lenet() {
  const NetworkLayer halve = pool(Kind::average_pool, 2, 2);
  return {conv(20, 3, 1, 0, true),
          relu,
          halve,
          conv(50, 5, 1, 0, true),
          relu,
          halve,
          flatten,
          linear(128),
          relu,
          linear(10)};
}

}  // namespace

TEST_CASE("LeNet: parameters, arithmetic and layers follow from its shapes") {
  const Model model = build(lenet(), 1, 28, 256);
  // Parameters: conv 20·(1·3·3) + 20, conv 50·(20·5·5) + 50, linear 800·128 + 128, linear 128·10 + 10.
  CHECK(model.parameters == 200 + 25050 + 102528 + 1290);
  // 28 → 26 → 13 → 9 → 4, so multiply–adds: 20·26²·9 + 50·9²·20·25 + 800·128 + 128·10 = 2,250,360, two operations each.
  CHECK(model.forward_flops_per_sample.value() == Approx(2.0 * 2'250'360));
  // One fp32 channel of 28 × 28.
  CHECK(model.input_bytes_per_sample.value() == 28 * 28 * 4);
  CHECK(model.tokens_per_sample == 0);

  REQUIRE(model.layers.size() == 5);
  const std::vector<std::string> names = {"conv 1", "conv 2", "linear 3", "linear 4", "loss"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(model.layers[i].layer.name == names[i]);
    CHECK(model.layers[i].layer.splittable == (names[i] != "loss"));
  }
  // The first layer hands on 20 × 13 × 13 fp32 numbers of 256 samples, the second 50 × 4 × 4.
  CHECK(model.layers[0].layer.output.value() == 256.0 * 20 * 13 * 13 * 4);
  CHECK(model.layers[1].layer.output.value() == 256.0 * 50 * 4 * 4 * 4);
}

TEST_CASE("A linear layer's three products have the shapes of the chain rule") {
  const Model model = build({linear(32), linear(8)}, 64, 1, 16);
  // Y[16,8] = X[16,32]·Wᵀ; dX[16,32] = dY[16,8]·W; dW[8,32] = dYᵀ·X.
  const Layer& second = model.layers[1].layer;
  CHECK(std::get<Matmul>(named(second.forward, "linear 32 to 8").work) ==
        Matmul{.m = 16, .n = 8, .k = 32, .transpose_b = true});
  CHECK(std::get<Matmul>(named(second.backward, "linear 32 to 8 data gradient").work) ==
        Matmul{.m = 16, .n = 32, .k = 8});
  CHECK(std::get<Matmul>(named(second.backward, "linear 32 to 8 weight gradient").work) ==
        Matmul{.m = 8, .n = 32, .k = 16, .transpose_a = true});
  // The images need no gradient.
  CHECK(count(model.layers[0].layer.backward, "linear 64 to 32 data gradient") == 0);
}

TEST_CASE("Every tensor that the backward pass reads is kept once") {
  SECTION("convolution, norm, ReLU") {
    // Input 3·8·8 = 192 for the weight gradient, the convolution's output 4·8·8 = 256 for the norm, the ReLU's output
    // 256; two statistics of 4 channels; fp32. The global pool keeps its input, the ReLU's output: already kept.
    const Model model = build({conv(4, 3, 1, 1), norm, relu, global_pool, linear(2)}, 3, 8);
    CHECK(model.layers[0].layer.kept().value() == (192 + 256 + 256 + 8) * 4);
    // The linear layer keeps the pooled 4 numbers.
    CHECK(model.layers[1].layer.kept().value() == 4 * 4);
    // Recomputation needs the layer's input only.
    CHECK(model.layers[0].layer.kept(Recompute::full).value() == 192 * 4);
  }
  SECTION("a flattened tensor is a view of what the ReLU keeps") {
    const Model model = build({conv(4, 3, 1, 1), relu, flatten, linear(2)}, 3, 8);
    CHECK(model.layers[0].layer.kept().value() == (192 + 256) * 4);
    CHECK(model.layers[1].layer.kept().value() == 0);
  }
  SECTION("max pooling keeps 8-byte indices, dropout a byte per element") {
    const NetworkLayer drop = simple(Kind::dropout);
    const Model model = build({conv(4, 3, 1, 1), relu, pool(Kind::max_pool, 2, 2), flatten, drop, linear(2)}, 3, 8);
    // 4·4·4 = 64 pooled numbers: 64 indices of 8 bytes and 64 mask bytes. The linear layer keeps the dropped-out 64.
    CHECK(model.layers[0].layer.kept().value() == (192 + 256) * 4 + 64 * 8 + 64);
    CHECK(model.layers[1].layer.kept().value() == 64 * 4);
  }
}

TEST_CASE("Batch norm reads twice and writes once, its gradient reads two tensors twice") {
  const Model model = build({conv(4, 1), norm, global_pool, linear(2)}, 3, 8, 10);
  const double tensor = 10.0 * 4 * 8 * 8 * 4;
  const double per_channel = 2 * 4 * 4;  // two fp32 numbers for each of 4 channels
  // Beside the maps: scale, shift, running mean and variance, and running and saved statistics; going back scale and
  // saved statistics, at most, and gradients of scale and shift.
  CHECK(moved(model.layers[0].layer.forward, "batch norm") ==
        std::pair(2 * tensor + 2 * per_channel, tensor + 2 * per_channel));
  CHECK(moved(model.layers[0].layer.backward, "batch norm gradient") ==
        std::pair(4 * tensor + 2 * per_channel, tensor + per_channel));
  CHECK(model.layers[0].layer.parameters == 4 * 3 + 2 * 4);
}

TEST_CASE("A residual block adds its paths and their gradients; equal blocks share a group") {
  const NetworkLayer block = composite(Kind::residual, {{conv(8, 3, 1, 1), norm, relu, conv(8, 3, 1, 1), norm}, {}});
  const Model model =
      build({conv(8, 3, 1, 1), relu, composite(Kind::repeat, {{block, relu}}, 3), global_pool, linear(2)}, 3, 8);
  // Stem; the first two blocks are equal, the third also has the global pool; linear; loss.
  REQUIRE(model.layers.size() == 5);
  const LayerGroup& blocks = model.layers[1];
  CHECK(blocks.layer.name == "residual 2");
  CHECK(blocks.repeat == 2);
  CHECK(model.layers[2].layer.name == "residual 4");
  // Sum: two tensors of 8·8·8 fp32 numbers in, one out; the same for the gradients, last of the backward pass.
  const double tensor = 8 * 8 * 8 * 4;
  CHECK(moved(blocks.layer.forward, "residual sum") == std::pair(2 * tensor, tensor));
  CHECK(std::get<Streaming>(named(blocks.layer.forward, "residual sum").work).fusible);
  CHECK(blocks.layer.backward.back().name == "gradient sum");
  // Kept: both norms' inputs, both ReLUs' outputs (the first is the second convolution's input; the block's own input
  // is kept by the ReLU before it), statistics of 8 channels twice.
  CHECK(blocks.layer.kept().value() == 4 * tensor + 2 * (2 * 8 * 4));
  // Parameters: two convolutions of 8·8·9 and two norms of 16, three blocks; stem 8·3·9; linear 8·2 + 2.
  CHECK(model.parameters == 3 * (2 * 576 + 2 * 16) + 216 + 18);
}

TEST_CASE("Branches are joined along channels by a copy; their input gradients are added") {
  const std::vector<std::vector<NetworkLayer>> paths = {
      {conv(2, 1)}, {conv(3, 3, 1, 1)}, {pool(Kind::max_pool, 3, 1, 1)}};
  const Model model = build({conv(8, 3, 1, 1), composite(Kind::branches, paths), global_pool, linear(2)}, 3, 8);
  const Layer& layer = model.layers[1].layer;
  // 2 + 3 + 8 = 13 channels of 8 × 8 fp32 numbers are read and written.
  const double joined = 13 * 8 * 8 * 4;
  CHECK(moved(layer.forward, "concatenation") == std::pair(joined, joined));
  CHECK(loop(layer.forward, "concatenation").fusible);
  // Three gradients are added in two kernels, each of which reads two tensors and writes one.
  const double tensor = 8 * 8 * 8 * 4;
  CHECK(named(layer.backward, "gradient sum").kernels == 2);
  CHECK(moved(layer.backward, "gradient sum") == std::pair(4 * tensor, 2 * tensor));
}

TEST_CASE("16-bit precision halves activations and adds casts of weights and their gradients") {
  const std::vector<NetworkLayer> layers = {conv(4, 3, 1, 1), relu, flatten, linear(2)};
  const Layer single = build(layers, 3, 8).layers[0].layer;
  const Model mixed = build(layers, 3, 8, 1, Precision::fp16);
  const Layer& half = mixed.layers[0].layer;
  CHECK(half.kept().value() == single.kept().value() / 2);
  CHECK(mixed.input_bytes_per_sample.value() == 192 * 2);
  // 4·3·9 = 108 weights: 4 bytes to 2 forward, 2 to 4 backward.
  CHECK(moved(half.forward, "cast weights") == std::pair(108 * 4.0, 108 * 2.0));
  CHECK(loop(half.backward, "cast weight gradient").written.value() == 108 * 4);
  CHECK(count(single.forward, "cast weights") == 0);
  // fp8 products leave activations in bf16.
  CHECK(build(layers, 3, 8, 1, Precision::fp8).layers[0].layer.kept().value() == half.kept().value());
}

TEST_CASE("Layers whose shapes do not fit are refused where they were written") {
  struct Case {
    std::string what;
    std::vector<NetworkLayer> before;
    NetworkLayer wrong;
    std::string key, got;
  };
  NetworkLayer grouped = conv(8, 3);
  grouped.groups = 3;
  NetworkLayer no_stride = conv(8, 3, 0);
  const std::vector<Case> cases = {
      {"kernel too large", {conv(4, 3)}, conv(8, 7), "conv", "kernel 7×7 is larger than the input 4×6×6"},
      {"pool too large", {}, pool(Kind::max_pool, 9, 2), "max_pool", "kernel 9×9 is larger than the input 3×8×8"},
      {"groups", {conv(4, 3)}, grouped, "conv", "groups 3 does not divide 4 input and 8 output channels"},
      {"stride", {}, no_stride, "conv", "stride is 0"},
      {"no channels", {}, conv(0, 3), "conv", "out is 0"},
      {"negative pad", {}, conv(8, 3, 1, -1), "conv", "pad is -1"},
      {"too much pad", {}, pool(Kind::average_pool, 2, 2, 2), "average_pool", "pad 2×2 is more than half the kernel"},
      {"not flat", {conv(4, 3)}, linear(10), "linear", "the input 4×6×6 is not flat"},
      {"too large",
       {flatten, linear(1 << 20), linear(1 << 30)},
       conv(1 << 30, 1, 1, 1 << 10),
       "conv",
       "a feature map of"},
      {"shortcut",
       {},
       composite(Kind::residual, {{conv(8, 3, 2, 1)}, {}}),
       "residual",
       "the body ends with 8×4×4, the shortcut with 3×8×8"},
      {"empty residual", {}, composite(Kind::residual, {{}, {}}), "residual", "no body"},
      {"branches",
       {},
       composite(Kind::branches, {{conv(8, 3)}, {conv(8, 1)}}),
       "branches",
       "one branch ends with 6×6, another with 8×8"},
      {"no branch", {}, composite(Kind::branches, {}), "branches", "no branch"},
      {"no repetition", {}, composite(Kind::repeat, {{relu}}, 0), "repeat", "times is 0"},
      {"nothing to repeat", {}, composite(Kind::repeat, {{}}, 2), "repeat", "no body"},
      {"repetition bomb",
       {},
       composite(Kind::repeat, {{composite(Kind::repeat, {{relu}}, 100'000)}}, 100'000),
       "relu",
       "more than 100000 layers"},
      {"not flat at the end", {}, conv(8, 3), "conv", "the network ends with 8×6×6"},
  };
  for (const Case& wrong : cases) {
    INFO(wrong.what);
    std::vector<NetworkLayer> layers = wrong.before;
    layers.push_back(wrong.wrong);
    // The position that the error must name; repeated bodies carry their own.
    NetworkLayer* marked = &layers.back();
    while (marked->kind == Kind::repeat && !marked->bodies.empty() && !marked->bodies[0].empty() && marked->times > 0) {
      marked = &marked->bodies[0][0];
    }
    marked->where = {"net.yaml", 12, 5};
    try {
      build(layers, 3, 8);
      FAIL("accepted");
    } catch (const ScenarioError& error) {
      CHECK(error.where().text() == "net.yaml:12:5");
      CHECK(error.key() == wrong.key);
      INFO(error.got());
      CHECK(error.got().find(wrong.got) != std::string::npos);
      CHECK(!error.expected().empty());
    }
  }
}

TEST_CASE("A network needs something to train and a micro-batch of at least one") {
  CHECK_THROWS_AS(build({}, 3, 8), ScenarioError);
  CHECK_THROWS_AS(build({global_pool, relu}, 3, 8), ScenarioError);
  CHECK_THROWS_AS(build({linear(2)}, 0, 1), ScenarioError);
  CHECK_THROWS_AS(build({global_pool, linear(2)}, 1'000'000, 1'000'000), ScenarioError);
  CHECK_THROWS_AS(build({linear(2)}, 4, 1, 0), InternalError);
}

TEST_CASE("A convolution in groups has weights for the channels of one group alone") {
  // 8 outputs of 4 input channels in two groups: 8 x 2 x 3 x 3 weights, half of those without groups.
  NetworkLayer grouped = conv(8, 3);
  grouped.groups = 2;
  CHECK(build({grouped, global_pool}, 4, 8).parameters == 8.0 * 2 * 3 * 3);
  CHECK(build({conv(8, 3), global_pool}, 4, 8).parameters == 8.0 * 4 * 3 * 3);
}

TEST_CASE("A fused batch norm does the activation and the residual sum behind it, whose inputs it reads") {
  // A block of two convolutions over 4 x 8 x 8 numbers of an input that a convolution made, 256 fp16 numbers a tensor.
  TrainerCode code;
  code.memory_format = MemoryFormat::nhwc;
  code.fusions = {Fusion::norm};
  const std::vector<NetworkLayer> body = {conv(4, 1), norm, relu, conv(4, 1), norm};
  const NetworkConfig config{
      3, 8, 8, {conv(4, 1), norm, relu, composite(Kind::residual, {body}), relu, flatten, linear(2)}};
  const Model model = build_network(config, "net", 1, Precision::fp16, code);
  const Layer& block = model.layers[1].layer;
  for (const std::vector<Operator>* pass : {&block.forward, &block.backward}) {
    for (const Operator& op : *pass) CHECK(op.name.find("relu") == std::string::npos);
  }
  const double tensor = 256.0 * 2;
  const auto extra = [](const std::vector<Operator>& pass, const std::string& name) {
    CHECK(named(pass, name).kernels == 0);
    return moved(pass, name);
  };
  CHECK(extra(block.forward, "residual sum") == std::pair(tensor, 0.0));
  CHECK(extra(block.backward, "residual gradient") == std::pair(0.0, tensor));
  // The convolution whose data gradient comes last adds it to that gradient.
  CHECK(extra(block.backward, "gradient sum") == std::pair(tensor, 0.0));
  for (const Operator& op : block.forward) {
    if (const auto* work = std::get_if<Convolution>(&op.work)) CHECK(work->format == MemoryFormat::nhwc);
  }
  // In NHWC cuDNN's kernels and those of frameworks that fuse have long loads; PyTorch's own for bf16 have not.
  CHECK(loop(block.forward, "batch norm").singles == 0.0);
  code.fusions = {};
  const Model own = build_network(config, "net", 1, Precision::bf16, code);
  CHECK(loop(own.layers[1].layer.forward, "batch norm").singles > 256.0);
}
