#include "model/workload/operator.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

double gflop(const OperatorWork& work) { return flops({"", work, Precision::fp16, 1}).value() * 1e-9; }
double megabytes(const OperatorWork& work, Precision precision) {
  return minimum_traffic({"", work, precision, 1}).value() * 1e-6;
}

}  // namespace

TEST_CASE("A product multiplies and adds m n k times") {
  // 2 · 3 · 1000 · 2000 · 500 = 6 GFLOP. Operands 3 · (1000 · 500 + 500 · 2000), result 3 · 1000 · 2000: 10.5 million.
  const Matmul work{.batch = 3, .m = 1000, .n = 2000, .k = 500};
  CHECK(gflop(work) == Approx(6.0));
  CHECK(megabytes(work, Precision::fp32) == Approx(42.0));
  CHECK(megabytes(work, Precision::fp16) == Approx(21.0));
  // Added into fp32: the 6 million results are read and written with 4 bytes each, 48 MB beside 9 MB of operands.
  Matmul adding = work;
  adding.accumulate_fp32 = true;
  CHECK(megabytes(adding, Precision::fp16) == Approx(57.0));
}

TEST_CASE("A convolution's passes do the same work on the same three tensors") {
  // ResNet-50's first layer, one image: 112 · 112 outputs, 64 filters of 3 · 7 · 7: 0.118 G multiplications.
  Convolution work{.n = 1, .c = 3, .h = 224, .w = 224, .k = 64, .r = 7, .s = 7, .p = 112, .q = 112, .stride = 2};
  for (const auto pass : {ConvolutionPass::forward, ConvolutionPass::data_gradient, ConvolutionPass::weight_gradient}) {
    work.pass = pass;
    CHECK(gflop(work) == Approx(2 * 0.118013952));
    // 150,528 inputs, 9,408 weights, 802,816 outputs of 4 bytes.
    CHECK(megabytes(work, Precision::fp32) == Approx(3.851008));
  }
  work = {.n = 2, .c = 32, .h = 10, .w = 10, .k = 32, .r = 3, .s = 3, .p = 10, .q = 10, .groups = 32};
  CHECK(gflop(work) == Approx(2e-9 * 2 * 32 * 100 * 9));  // depthwise: each filter sees one channel
}

TEST_CASE("Streaming work states its own traffic and arithmetic") {
  const Streaming work{StreamingKind::reduction, 3.0_MB, 2.0_MB, Flops(7e9), false};
  CHECK(gflop(work) == Approx(7.0));
  CHECK(megabytes(work, Precision::fp8) == Approx(5.0));
}
