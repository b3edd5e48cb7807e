// Layouts, alignment and formats of GEMMs.
#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Machine;
using foretrain::test::machine;

namespace {

double microseconds(const Machine& m, const Matmul& work, Precision precision) {
  return m.time(work, precision).value() * 1e6;
}

}  // namespace

TEST_CASE("A product does not care how its operands lie") {
  const Machine& m = machine("dgx-a100-80gb");
  const Matmul plain{.m = 8192, .n = 8192, .k = 8192};
  Matmul transposed = plain;
  transposed.transpose_b = true;
  CHECK(microseconds(m, transposed, Precision::fp16) == Approx(microseconds(m, plain, Precision::fp16)).epsilon(0.02));
}

TEST_CASE("In tf32 Hopper multiplies two operands that lie across k as fast as Ampere's instructions do") {
  // 3072 x 3072 x 65536: 1,024 operations a clock and multiprocessor, of which there are 132 at 1,980 MHz, instead of
  // the datasheet's 495 TFLOP/s.
  const auto gradient_over_product = [](const char* node, Precision precision) {
    Machine m = machine(node);
    m.gpu.board_power_watts = 0.0;  // no limit
    Matmul work{.m = 3072, .n = 3072, .k = 65536};
    const Seconds product = m.time(work, precision);
    work.transpose_a = true;
    return m.time(work, precision) / product;
  };
  CHECK(gradient_over_product("dgx-h100", Precision::tf32) == Approx(494.7 / (1.024e-9 * 132 * 1980e6)).epsilon(0.05));
  CHECK(gradient_over_product("dgx-h100", Precision::bf16) == 1.0);
  CHECK(gradient_over_product("dgx-a100-80gb", Precision::tf32) == 1.0);
  CHECK(gradient_over_product("dgx-b200", Precision::tf32) == 1.0);
}

TEST_CASE("On Hopper CUDA cores add up gradients in fp8, beside which tensor cores wait for some of the time") {
  // 8192 x 8192 x 8192 by tiles of 160 x 128. 1979 TFLOP/s make 1979 / 256 T additions a second, of which CUDA cores do
  // 66.9 / 2 T: 0.231 of the time, and a share of that stands out. A tile half as large loses another percent.
  const auto gradient_over_product = [](const char* node, Precision precision) {
    Machine m = machine(node);
    m.gpu.board_power_watts = 0.0;  // no limit
    return m.time(linear_data_gradient(8192, 8192, 8192), precision) /
           m.time(linear_forward(8192, 8192, 8192), precision);
  };
  const double share = machine("dgx-h100").calibration.matmul.warp_group_exposed_share;
  CHECK(gradient_over_product("dgx-h100", Precision::fp8) == Approx((1.0 + share * 0.231) * 1.01).epsilon(0.02));
  CHECK(gradient_over_product("dgx-h100", Precision::bf16) == 1.0);
  CHECK(gradient_over_product("dgx-b200", Precision::fp8) == 1.0);
  CHECK(gradient_over_product("l40s-x8", Precision::fp8) == 1.0);
}

TEST_CASE("Rows that begin at odd addresses are loaded piece by piece, unless they are padded") {
  // A100, fp16, tiles of 256 × 128. A step of k multiplies 2 · 256 · 128 = 65,536 FLOP at 2048 FLOP per clock and
  // multiprocessor, 32 clocks and a tenth; by Turing's instructions, which odd addresses ask for, at half of that: 64.
  // It loads 384 numbers twice, 32 lanes a clock: 24 clocks at 2 B, which do not overlap: 2.6 times. At 4 B they are 12
  // clocks, which do. H100 multiplies twice as fast, but by Turing's instructions no faster: 5 times.
  const Machine &a100 = machine("dgx-a100-80gb"), &h100 = machine("dgx-h100");
  const Matmul even{.m = 8192, .n = 8192, .k = 8192};
  const Matmul odd{.m = 8192, .n = 8192, .k = 8191};
  Matmul padded = odd;
  padded.padded = true;
  for (const Machine* m : {&a100, &h100}) {
    CHECK(microseconds(*m, padded, Precision::fp16) == Approx(microseconds(*m, even, Precision::fp16)).epsilon(0.01));
  }
  const auto loss = [&](const Machine& m) {
    return microseconds(m, odd, Precision::fp16) / microseconds(m, padded, Precision::fp16);
  };
  CHECK(loss(a100) == Approx(2.6).epsilon(0.1));
  CHECK(loss(h100) > 1.5 * loss(a100));
  CHECK(loss(h100) < 5.5);
  const Matmul pairs{.m = 8192, .n = 8192, .k = 8190};
  CHECK(microseconds(a100, pairs, Precision::fp16) == Approx(microseconds(a100, even, Precision::fp16)).epsilon(0.01));
}

TEST_CASE("What counts is the side that lies contiguous") {
  // k = 8191 is a row's length in A as it stands, and only the number of rows once A is transposed.
  const Machine& m = machine("dgx-h100");
  const Matmul plain{.m = 8192, .n = 8192, .k = 8191};
  Matmul transposed = plain;
  transposed.transpose_a = true;
  CHECK(microseconds(m, plain, Precision::fp16) > 1.2 * microseconds(m, transposed, Precision::fp16));
  // Rows of the result count as well, on tensor cores: GPT-2's 50,257 words. On CUDA cores numbers are stored one by
  // one.
  const Matmul even{.m = 8192, .n = 50304, .k = 768, .transpose_b = true};
  Matmul words = even;
  words.n = 50257;
  CHECK(microseconds(m, words, Precision::bf16) > 3.0 * microseconds(m, even, Precision::bf16));
  CHECK(microseconds(m, words, Precision::fp32) == Approx(microseconds(m, even, Precision::fp32)).epsilon(0.03));
  // A vector is one row, however it is called: k = 8192 lies aligned.
  const Matmul vector{.m = 8192, .n = 1, .k = 8192};
  Matmul other = vector;
  other.transpose_b = true;
  CHECK(microseconds(m, vector, Precision::fp16) == Approx(microseconds(m, other, Precision::fp16)).epsilon(1e-3));
}

TEST_CASE("Adding into the result reads it as well") {
  const Operator plain{"", Matmul{.m = 100, .n = 200, .k = 300}, Precision::fp16, 1};
  Operator adding = plain;
  std::get<Matmul>(adding.work).accumulate = true;
  CHECK((minimum_traffic(adding) - minimum_traffic(plain)).value() == Approx(100 * 200 * 2.0));
}

TEST_CASE("A format without units is multiplied in the next wider one") {
  const Gpu &h100 = machine("dgx-h100").gpu, &a100 = machine("dgx-a100-80gb").gpu,
            &v100 = machine("dgx1-v100-16gb").gpu;
  CHECK(h100.arithmetic_precision(Precision::int4) == Precision::int8);  // Hopper dropped int4
  CHECK(a100.arithmetic_precision(Precision::fp8) == Precision::fp16);
  CHECK(v100.arithmetic_precision(Precision::fp8) == Precision::fp16);
  CHECK(v100.arithmetic_precision(Precision::bf16) == Precision::fp32);
  CHECK(a100.arithmetic_precision(Precision::fp64) == Precision::fp64);
  // Its operands stay as small in memory: a skinny product in int4 takes half the time of int8.
  const Machine& m = machine("dgx-h100");
  const Matmul skinny{.m = 1, .n = 32768, .k = 32768};
  CHECK(m.time(skinny, Precision::int8) / m.time(skinny, Precision::int4) == Approx(2.0).epsilon(0.1));
}
