// GEMMs on a processor of round figures.
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
  // 32 operations a cycle at 4 GHz: 128 GFLOP/s a core, 134.2 ms. Blocks are 341 deep (half of the L1 for 24 rows and
  // columns): seven of them, so that the 16 MiB of C, too much for the L3, are cleared and then updated seven times at
  // memory's 6.4 GB/s. A and B are read from memory at 12.8 GB/s and written to the L2 at 32.
  const double c = 4.0 * 2048 * 2048, flops = 2.0 * 2048 * 2048 * 2048;
  const double one = gigaflops({2048, 2048, 2048, Precision::fp32, 1});
  CHECK(one ==
        Approx(flops / (flops / 128e9 + 8.0 * c / 6.4e9 + 2.0 * c / 12.8e9 + 2.0 * c / 32e9) * 1e-9).epsilon(2e-3));
  CHECK(one > 0.8 * 128.0);
  CHECK(gigaflops({2048, 2048, 2048, Precision::fp64, 1}) < one / 2.0);
  CHECK(gigaflops({2048, 2048, 2048, Precision::fp64, 1}) > 0.8 * one / 2.0);
  // Four threads share out the arithmetic, but memory carries no more than twice what one of them asks for.
  CHECK(gigaflops({2048, 2048, 2048, Precision::fp32, 4}) ==
        Approx(flops / (flops / 512e9 + 8.0 * c / 12.8e9 + 2.0 * c / 25.6e9 + 2.0 * c / 128e9) * 1e-9).epsilon(2e-3));
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

TEST_CASE("Small products are done in place where the library has kernels for it") {
  // 64 x 64 x 64: a quarter of a million multiply-adds, 4.1 us of arithmetic; C, 16 KiB, goes to the L1 once at 64
  // GB/s: 0.256 us. Packed as well: C is cleared first, and A and B, 32 KiB, are read and written.
  Cpu cpu = round_cpu();
  const double packed = cpu_matmul_cost({64, 64, 64, Precision::fp32, 1}, cpu).time.value();
  cpu.matrix_library.small_product = 1e6;
  cpu.matrix_library.small_vector = Bytes(64.0);
  CHECK(cpu_matmul_cost({64, 64, 64, Precision::fp32, 1}, cpu).time.value() == packed);  // vectors of 32 bytes: no
  cpu.matrix_library.small_vector = Bytes(32.0);
  const double in_place = cpu_matmul_cost({64, 64, 64, Precision::fp32, 1}, cpu).time.value();
  CHECK(in_place == Approx(2.0 * 64 * 64 * 64 / 128e9 + 16384.0 / 64e9));
  cpu.matrix_library.join = Seconds(10e-6);  // no other thread is woken
  CHECK(cpu_matmul_cost({64, 64, 64, Precision::fp32, 4}, cpu).time.value() == in_place);
  CHECK(packed > in_place + 32768.0 / 128e9 + 2.0 * 16384.0 / 64e9);
  // 128 x 128 x 128 are two million: packed all the same.
  CHECK(cpu_matmul_cost({128, 128, 128, Precision::fp32, 1}, cpu).time.value() ==
        cpu_matmul_cost({128, 128, 128, Precision::fp32, 1}, round_cpu()).time.value());
}

TEST_CASE("Two threads are woken where there are two tiles, none where the whole result is one") {
  // Tiles of 16 x 8.
  Cpu cpu = round_cpu();
  cpu.matrix_library.join = Seconds(1.0);
  const auto woken = [&](std::int64_t m, std::int64_t n, int threads) {
    return cpu_matmul_cost({m, n, 64, Precision::fp32, threads}, cpu).time > Seconds(1.0);
  };
  CHECK_FALSE(woken(16, 8, 4));
  CHECK(woken(17, 8, 4));
  CHECK(woken(16, 9, 4));
  CHECK(woken(64, 64, 2));
  CHECK_FALSE(woken(64, 64, 1));
}

TEST_CASE("A product's bytes: operands read and packed, the result cleared, then read and written for each block") {
  // Blocks are 341 deep: k = 341 is one, 342 are two.
  const auto bytes = [](std::int64_t k) {
    return cpu_matmul_cost({64, 32, k, Precision::fp32, 1}, round_cpu()).bytes.value();
  };
  const double result = 4.0 * 64 * 32;
  CHECK(bytes(341) == 2.0 * 4.0 * (64 + 32) * 341 + 3.0 * result);
  CHECK(bytes(342) == 2.0 * 4.0 * (64 + 32) * 342 + 5.0 * result);
}

TEST_CASE("A short result is bound by what packing its long operands moves") {
  // 8 x 8 x 4 million: 512 million operations take 4 ms of a core's peak if its tiles of 16 x 8 were full, 8 ms half
  // empty; 256 MB are read from memory at 12.8 GB/s, 20 ms, and written to blocks.
  const CpuMatmulCost cost = cpu_matmul_cost({8, 8, 4'000'000, Precision::fp32, 1}, round_cpu());
  CHECK(cost.bound == "memory");
  CHECK(cost.time > Seconds(0.028));
}
