
#include "model/cost/kernels.hpp"
#include "model/cost/power.hpp"
#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Machine;
using foretrain::test::machine;

namespace {

constexpr auto fp32 = static_cast<std::size_t>(Precision::fp32), bf16 = static_cast<std::size_t>(Precision::bf16);

// A device in round numbers: 10 multiprocessors of 1 TFLOP/s each, 1 TB/s, no L2, no power limit.
Machine simple() {
  Machine m;
  m.gpu.compute_capability = 7.0;
  m.gpu.sms = 10;
  m.gpu.vector_rate[fp32] = FlopsPerSecond(10e12);
  m.gpu.memory_bandwidth = BytesPerSecond(1e12);
  m.gpu.memory_latency = Seconds(1e-6);
  m.gpu.l2_bandwidth = BytesPerSecond(1e13);
  m.gpu.l2_cache = Bytes(1e9);
  m.calibration.matmul = {.vector_efficiency = TrackedNumber(1.0),
                          .issue_share = TrackedNumber(1.0),
                          .tile_loss = TrackedNumber(0.0),
                          .tile_latencies = TrackedNumber(2.0),
                          .fixed_us = TrackedNumber(3.0),
                          .warp_group_fixed_us = TrackedNumber(5.0),
                          .tensor_memory_fixed_us = TrackedNumber(7.0),
                          .exposed_share = TrackedNumber(0.5),
                          .warp_group_exposed_share = TrackedNumber(0.25),
                          .tensor_memory_exposed_share = TrackedNumber(0.75)};
  m.calibration.streaming.bandwidth_efficiency = 1.0;
  return m;
}

/// The same with tensor cores of this compute capability: 1 TFLOP/s each, 512 operations a clock.
Machine with_tensor_cores(double compute_capability) {
  Machine m = simple();
  m.gpu.compute_capability = compute_capability;
  m.gpu.boost_clock = Hertz(1e12 / 512.0);
  m.gpu.tensor_rate[bf16] = FlopsPerSecond(10e12);
  return m;
}

}  // namespace

TEST_CASE("One full wave of tiles: compute, half of the traffic, one start and the fixed time") {
  // 1280 × 128 in tiles of 128 × 128 is 10 tiles on 10 multiprocessors, one wave, as is 640 × 256 in no other shape.
  // Compute: 2 · 1280 · 128 · 10,000 FLOP at 10 TFLOP/s = 327.68 us. Traffic: (1280 + 128) · 10,000 · 4 B + 1280 · 128
  // · 4 B = 56.975 MB at 1 TB/s = 56.975 us, of which half is exposed. Start: 2 latencies of 1 us; fixed: 3 us.
  const Seconds time = simple().time(Matmul{.m = 1280, .n = 128, .k = 10000}, Precision::fp32);
  CHECK(time.value() * 1e6 == Approx(327.68 + 56.975 / 2 + 2 + 3).epsilon(1e-3));
}

TEST_CASE("One tile more than a wave costs a second wave, unless K is split") {
  // 11 tiles of 128 × 128 on 10 multiprocessors take two waves, and so does one column more. Splitting K or smaller
  // tiles soften that: the time rises by more than the 10 % of work, but at most doubles.
  const Machine m = simple();
  const double one = m.time(Matmul{.m = 1280, .n = 128, .k = 10000}, Precision::fp32).value();
  const double more = m.time(Matmul{.m = 1281, .n = 128, .k = 10000}, Precision::fp32).value();
  CHECK(more > 1.05 * one);
  CHECK(more < 2.0 * one);
}

TEST_CASE("In fp32 tiles of 128 x 128 are taken wherever they occupy every multiprocessor") {
  // 11 · 11 = 121 tiles are 12.1 waves of ten: 13 instead of 12.1 waves' worth of work, 7 % more.
  const Machine m = simple();
  const auto compute = [&](std::int64_t side) {
    return m.time(Matmul{.m = side, .n = side, .k = 100'000}, Precision::fp32).value() /
           static_cast<double>(side * side);
  };
  CHECK(compute(11 * 128) / compute(10 * 128) == Approx(13.0 / 12.1).epsilon(0.005));
}

TEST_CASE("Few tiles and a long K: the product is split over the idle multiprocessors") {
  // One tile of 128 × 128 alone would leave 9 of 10 multiprocessors idle: 2 · 128 · 128 · 1e6 FLOP at 1 TFLOP/s = 32.8
  // ms. Split eight ways it takes an eighth of that, and some for adding up the parts.
  const Seconds time = simple().time(Matmul{.m = 128, .n = 128, .k = 1'000'000}, Precision::fp32);
  CHECK(time.value() < 32.8e-3 / 6);
  CHECK(time.value() > 32.8e-3 / 10);
}

TEST_CASE("A skinny product is bound by reading its matrix") {
  // m = 1: 8192 · 8192 fp16 weights are 134 MB; at 86 % of 2039 GB/s that is 76.5 us. The arithmetic hides behind it
  // but for its exposed share, so at most half as much again.
  const OperatorCost cost = machine("dgx-a100-80gb").cost(Matmul{.m = 1, .n = 8192, .k = 8192}, Precision::fp16);
  CHECK(cost.bound == Bound::memory);
  CHECK(cost.device.value() * 1e6 > 76.5);
  CHECK(cost.device.value() * 1e6 < 1.5 * 76.5);
}

TEST_CASE("Adding into an fp32 result moves eight bytes instead of two per element") {
  // 4096 × 16384 results: 67.1 million · 6 B more = 403 MB, at 86 % of 1935 GB/s 242 us, of which 51 % is exposed. The
  // board has no power limit here: what waits for memory would leave more of it to the products.
  Machine m = machine("a100-pcie-x1");
  m.gpu.board_power_watts = 0.0;
  const Matmul plain{.m = 4096, .n = 16384, .k = 5120};
  Matmul accumulating = plain;
  accumulating.accumulate_fp32 = true;
  const double difference = m.time(accumulating, Precision::bf16).value() - m.time(plain, Precision::bf16).value();
  CHECK(difference * 1e6 == Approx(0.51 * 242).epsilon(0.02));
}

TEST_CASE("Time never falls as a product grows, alignment aside") {
  std::mt19937 random(1);
  const auto size = [&](double largest) {
    return static_cast<std::int64_t>(std::exp(std::uniform_real_distribution<double>(0.0, std::log(largest))(random)));
  };
  for (const char* node : {"dgx1-p100", "dgx1-v100-16gb", "t4-x1", "dgx-a100-80gb", "dgx-h100", "dgx-b200"}) {
    const Machine& m = machine(node);
    for (int i = 0; i < 300; ++i) {
      Matmul small{size(64), size(20000), size(20000), size(20000), i % 2 == 0};
      small.padded = true;
      Matmul large = small;
      std::int64_t Matmul::*const dimensions[] = {&Matmul::batch, &Matmul::m, &Matmul::n, &Matmul::k};
      large.*dimensions[i % 4] += size(500);
      for (const Precision precision : {Precision::fp32, Precision::fp16}) {
        INFO(node << " " << small.batch << " x " << small.m << " x " << small.n << " x " << small.k << " dimension "
                  << i % 4);
        CHECK(m.time(large, precision).value() >= m.time(small, precision).value() * (1 - 1e-9));
      }
    }
  }
}

TEST_CASE("A board of half the power runs slower, but by less than half") {
  // Power goes with the cube of the clock beyond a quarter of static power: where the full board is just at its limit,
  // half the power leaves the cube root of a half, 0.794.
  PowerConstants constants{.static_share = TrackedNumber(0.25), .generation = {}};
  constants.generation[generation_of(10.0)].tensor_pj = 1.0;
  Gpu gpu;
  gpu.compute_capability = 10.0;
  gpu.boost_clock = Hertz(1e9);
  gpu.tensor_rate[static_cast<std::size_t>(Precision::fp16)] = FlopsPerSecond(300e12);
  gpu.board_power_watts = 400.0;  // 300 W beyond the static share, as 300 TFLOP/s of 1 pJ need
  CHECK(sustained_clock(gpu, Precision::fp16, constants) == 1.0);
  gpu.board_power_watts = 200.0;
  CHECK(sustained_clock(gpu, Precision::fp16, constants) == Approx(0.7937).epsilon(0.001));
  // At twice the clock the voltage is twice as high, and an operation takes four times as much.
  gpu.boost_clock = Hertz(2e9);
  CHECK(sustained_clock(gpu, Precision::fp16, constants) == Approx(0.5).epsilon(0.001));
}

TEST_CASE("Chips of an unknown generation are priced like the newest that is not newer") {
  PowerConstants constants{.static_share = TrackedNumber(0.0), .generation = {}};
  for (std::size_t i = 0; i < chip_generations.size(); ++i) {
    constants.generation[i].vector_pj = 10.0 * static_cast<double>(i + 1);
  }
  Gpu gpu;
  gpu.boost_clock = Hertz(1e9);
  gpu.vector_rate[fp32] = FlopsPerSecond(10e12);
  gpu.board_power_watts = 100.0;
  // The clock is the cube root of power over need: 100 W / (10 TFLOP/s · watts).
  gpu.compute_capability = 7.2;  // after Volta (third row: 30 W), before Turing
  CHECK(sustained_clock(gpu, Precision::fp32, constants) == Approx(std::cbrt(100.0 / 300.0)));
  gpu.compute_capability = 99.0;  // the newest, eleventh row
  CHECK(sustained_clock(gpu, Precision::fp32, constants) == Approx(std::cbrt(100.0 / 1100.0)));
  gpu.architecture = "cdna3";  // of another maker: a row of its own, the thirteenth
  CHECK(sustained_clock(gpu, Precision::fp32, constants) == Approx(std::cbrt(100.0 / 1300.0)));
  gpu.architecture = "blackwell";
  gpu.compute_capability = 2.0;  // before all
  CHECK(sustained_clock(gpu, Precision::fp32, constants) == Approx(1.0));
}

TEST_CASE("A product of half the width takes more than half the energy, and one of unknown energy is not limited") {
  // 300 W for 300 TFLOP/s of 2 bytes at 1 pJ. 600 TFLOP/s of 1 byte take 600 · (1 - s / 2) W: 372 W with s = 0.76, of
  // which 300 W are granted.
  PowerConstants constants{.static_share = TrackedNumber(0.0), .operand_share = TrackedNumber(0.76), .generation = {}};
  for (GenerationPower& energy : constants.generation) energy.tensor_pj = 1.0;
  Gpu gpu;
  gpu.boost_clock = Hertz(1e9);
  gpu.tensor_rate[static_cast<std::size_t>(Precision::fp16)] = FlopsPerSecond(300e12);
  gpu.tensor_rate[static_cast<std::size_t>(Precision::fp8)] = FlopsPerSecond(600e12);
  gpu.board_power_watts = 300.0;
  gpu.compute_capability = 9.0;
  CHECK(sustained_clock(gpu, Precision::fp8, constants) == Approx(std::cbrt(300.0 / 372.0)));
  for (GenerationPower& energy : constants.generation) energy.tensor_pj = 0.0;
  CHECK(sustained_clock(gpu, Precision::fp8, constants) == 1.0);
}

TEST_CASE("An engine's product in nvfp4 fills one multiprocessor a tile, unsplit, and reads the shorter side again") {
  // One tile of 128 × 256 and a sum of 1e6: (128 + 256) · 0.5625 B at 64 B a clock of 1 ns, 3.375 ns for each element
  // of the sum, on one multiprocessor of ten. Traffic: 384 · 1e6 · 0.5625 B and 128 · 256 · 2 B at 1 TB/s, 216.07 us,
  // of which half is exposed. Start: 2 us; fixed: 3 us.
  Machine m = simple();
  m.gpu.boost_clock = Hertz(1e9);
  m.gpu.tensor_rate[static_cast<std::size_t>(Precision::nvfp4)] = FlopsPerSecond(1e15);
  const auto time = [&m](const Matmul& product) {
    return engine_product_time(product, Precision::nvfp4, m.gpu, m.calibration);
  };
  const Matmul one{.m = 128, .n = 256, .k = 1'000'000};
  const Seconds tile = time(one);
  CHECK(tile.value() * 1e6 == Approx(3375.0 + 216.07 / 2 + 2 + 3).epsilon(1e-3));
  CHECK(m.time(one, Precision::nvfp4) < 0.5 * tile);  // a library's, split over ten
  // Ten tiles of 128 rows: without an L2, the 256 columns of 1e5 · 0.5625 B, 14.4 MB, are read nine times more.
  const Matmul tall{.m = 1280, .n = 256, .k = 100'000};
  const Seconds held = time(tall);
  m.gpu.l2_cache = Bytes(0.0);
  CHECK((time(tall) - held).value() * 1e6 == Approx(9 * 14.4 / 2).epsilon(1e-3));
}

TEST_CASE("Experts' products fill waves together, and each loses half a tile of rows") {
  // Ten of 128 rows and 128 columns: a batch of equal ones takes one wave of 128 × 128. Where rows differ, tiles of
  // 64 × 64 lose least: 10 · 2.5 · 2 = 50, five waves of a quarter of the work, 1.25 times as long; more is lost by
  // none.
  const Machine m = simple();
  const auto time = [&](std::int64_t rows, bool grouped) {
    return m.time(Matmul{.batch = 10, .m = rows, .n = 128, .k = 100'000, .grouped = grouped}, Precision::fp32).value();
  };
  CHECK(time(128, true) > 1.1 * time(128, false));
  CHECK(time(128, true) < 1.3 * time(128, false));
  // Of a hundred times the rows, half a tile is nothing.
  CHECK(time(12800, true) < 1.01 * time(12800, false));
  // Of their weights' gradients the sums differ in length, not the results in size.
  Matmul gradient{.batch = 10, .m = 128, .n = 128, .k = 100'000, .transpose_a = true};
  const double equal = m.time(gradient, Precision::fp32).value();
  gradient.grouped = true;
  CHECK(m.time(gradient, Precision::fp32).value() == equal);
}

TEST_CASE("Where warp groups multiply, tiles of 192 x 192 fill a wave, and no tile has a start of its own") {
  // 10 tiles of 2 · 192 · 192 · 10,000 operations at 1 TFLOP/s: 737.28 us. Traffic: (1920 + 192) · 10,000 · 2 B + 1920
  // · 192 · 2 B = 42.977 MB at 1 TB/s, of which a quarter is exposed; 5 us of start and drain.
  const Matmul work{.m = 1920, .n = 192, .k = 10000};
  CHECK(with_tensor_cores(9.0).time(work, Precision::bf16).value() * 1e6 ==
        Approx(737.28 + 42.977 / 4 + 5).epsilon(1e-3));
  // Warps have no such tile: 90 of 64 x 64 fill nine waves, and start in two rounds, as eight are resident.
  CHECK(with_tensor_cores(8.0).time(work, Precision::bf16).value() * 1e6 ==
        Approx(737.28 + 42.977 / 2 + 2 * 2 + 3).epsilon(1e-3));
  // CUDA cores multiply as they do everywhere: one wave of 128 x 128 with a start of 2 us, as in the case above.
  CHECK(with_tensor_cores(9.0).time(Matmul{.m = 1280, .n = 128, .k = 10000}, Precision::fp32).value() * 1e6 ==
        Approx(327.68 + 56.975 / 2 + 2 + 3).epsilon(1e-3));
}
