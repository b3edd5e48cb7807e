// Matrix products on a processor of round figures.
#include "model/cost/cpu_matmul.hpp"

#include "tests/catch.hpp"
#include "tests/cost/processors.hpp"

using namespace foretrain;
using foretrain::test::round_cpu;

namespace {

double gigaflops(CpuMatmul work, const Cpu& cpu = round_cpu()) {
  const CpuMatmulCost cost = cpu_matmul_cost(work, cpu);
  return cost.flops.value() / cost.time.value() * 1e-9;
}

}  // namespace

TEST_CASE("Large products come near the cores' peak, fp64 half of it") {
  // 32 operations a cycle at 4 GHz: 128 GFLOP/s a core; operands are packed once, and C moves beside the arithmetic.
  const double one = gigaflops({2048, 2048, 2048, Precision::fp32, 1});
  CHECK(one > 0.90 * 128.0);
  CHECK(one < 128.0);
  CHECK(gigaflops({2048, 2048, 2048, Precision::fp64, 1}) == Approx(one / 2.0).epsilon(0.05));
  CHECK(gigaflops({2048, 2048, 2048, Precision::fp32, 4}) == Approx(one * 4.0).epsilon(0.10));
  CHECK(cpu_matmul_cost({2048, 2048, 2048, Precision::fp32, 1}, round_cpu()).bound == "compute");
}

TEST_CASE("Edges of register tiles are computed in full") {
  // Tiles of 16 x 8 (two vectors of eight floats). A column of tiles more, for one column of C: 1025 columns cost as
  // much arithmetic as 1032, and 1024 one hundred-and-twenty-eighth less.
  const auto time = [](std::int64_t n) {
    return cpu_matmul_cost({512, n, 512, Precision::fp32, 1}, round_cpu()).time.value();
  };
  const double tile = 2.0 * 512.0 * 8.0 * 512.0 / 128e9;
  CHECK(time(1025) - time(1024) == Approx(tile).epsilon(0.05));
  CHECK(time(1032) - time(1025) < 0.3 * tile);  // packing seven columns more
}

TEST_CASE("A short k is bound by the traffic of the result") {
  // k = 4: eight operations for each element of C, which is read and written: far below the peak.
  const CpuMatmulCost cost = cpu_matmul_cost({4096, 4096, 4, Precision::fp32, 1}, round_cpu());
  CHECK(cost.bound == "memory");
  CHECK(cost.flops.value() / cost.time.value() < 0.3 * 128e9);
}

TEST_CASE("Starting threads is not worth it for a small product") {
  Cpu cpu = round_cpu();
  cpu.matrix_library.join = Seconds(10e-6);
  CHECK(gigaflops({64, 64, 64, Precision::fp32, 4}, cpu) < gigaflops({64, 64, 64, Precision::fp32, 1}, cpu));
  CHECK(cpu_matmul_cost({64, 64, 64, Precision::fp32, 4}, cpu).bound == "latency");
}
