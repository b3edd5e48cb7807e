#include "model/cost/operator_cost.hpp"

#include "model/cost/power.hpp"
#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Machine;
using foretrain::test::machine;

namespace {

OperatorWorkload product(std::int64_t side, Precision precision, OperatorConditions conditions = {}) {
  return {Operator{"product", Matmul{.m = side, .n = side, .k = side}, precision, 1}, 1, conditions};
}

double microseconds(const OperatorWorkload& workload, const Machine& m) {
  return cost_alone(workload, m.gpu, m.calibration).device.value() * 1e6;
}

}  // namespace

TEST_CASE("A burst is the faster the shorter it is, and settles at the sustained time") {
  const Machine& m = machine("dgx-h100");
  const OperatorConditions burst{.clock = Clock::boost};
  double before = 0.0;
  for (const std::int64_t side : {8192, 16384, 32768}) {
    const double share =
        microseconds(product(side, Precision::bf16, burst), m) / microseconds(product(side, Precision::bf16), m);
    INFO(side);
    CHECK(share > before);
    CHECK(share <= 1.0);
    before = share;
  }
  // 32768³ takes 0.1 s at least (70 TFLOP at 700 TFLOP/s): nine executions last longer than power needs to settle.
  CHECK(before > 0.98);
  // A board whose power suffices has none.
  Machine strong = m;
  strong.gpu.board_power_watts = 5000.0;
  CHECK(microseconds(product(8192, Precision::bf16, burst), strong) ==
        Approx(microseconds(product(8192, Precision::bf16), strong)));
}

TEST_CASE("Of a burst's few operands the L2 keeps what fits of all copies") {
  // A skinny product of 64 x 4096 x 2048 in bf16 reads and writes 17.6 MB. Copies of 118 MB in an L2 of 96 MiB: the
  // square of 0.853, 73 %, is read at 5,290 instead of 864 GB/s. Twice the L2 holds all of them.
  Machine m = machine("l40s-x8");
  m.calibration.access.rotated_mb = 118.0;
  m.calibration.matmul.exposed_share = 0.0;
  m.gpu.tensor_rate[static_cast<std::size_t>(Precision::bf16)] *= 100.0;  // so that traffic alone counts
  const OperatorWorkload burst{
      Operator{"product", Matmul{.m = 64, .n = 4096, .k = 2048}, Precision::bf16, 1}, 1, {.clock = Clock::boost}};
  const double bytes = 2.0 * (64 * 2048 + 2048 * 4096 + 64 * 4096);
  const double cold = bytes / (0.86 * 864e3), warm = bytes / (0.86 * 5290e3);
  const double held = std::pow(96.0 * 1024 * 1024 / 118e6, 2.0);
  Machine twice = m;
  twice.gpu.l2_cache = 2.0 * m.gpu.l2_cache;
  CHECK(microseconds(burst, m) - microseconds(burst, twice) == Approx((1.0 - held) * (cold - warm)).epsilon(0.02));
}

TEST_CASE("Formats that operands are cast to begin with the cast, unless both lie ready") {
  const Machine& m = machine("dgx-b200");
  CHECK(product(1024, Precision::bf16).operators().size() == 1);
  CHECK(product(1024, Precision::fp8, {.cast = false}).operators().size() == 1);
  // fp8: the largest value (2 bytes read), its scale, the cast (2 bytes read, 1 written): three kernels.
  const std::vector<Operator> fp8 = product(1024, Precision::fp8).operators();
  REQUIRE(fp8.size() == 2);
  CHECK(fp8.front().kernels == 3);
  CHECK(std::get<Streaming>(fp8.front().work).read == Bytes(4.0 * 1024 * 1024));
  CHECK(std::get<Streaming>(fp8.front().work).written == Bytes(1.0 * 1024 * 1024));
  // nvfp4: one pass that writes half a byte, and a scale of one byte for sixteen.
  const std::vector<Operator> nvfp4 = product(1024, Precision::nvfp4).operators();
  CHECK(nvfp4.front().kernels == 1);
  CHECK(std::get<Streaming>(nvfp4.front().work).written == Bytes(0.5625 * 1024 * 1024));
  const double ready = microseconds(product(1024, Precision::fp8, {.cast = false}), m);
  CHECK(microseconds(product(1024, Precision::fp8), m) > ready + 3.0 * m.calibration.streaming.kernel_us);
  // Its kernels and bytes are those of the cast and of the product, each once.
  const OperatorCost both = cost_alone(product(1024, Precision::fp8), m.gpu, m.calibration);
  const OperatorCost alone = cost_alone(product(1024, Precision::fp8, {.cast = false}), m.gpu, m.calibration);
  CHECK(both.kernels == 3 + alone.kernels);
  CHECK((both.bytes - alone.bytes).value() == Approx(5.0 * 1024 * 1024));
}

TEST_CASE("Launched one by one, each kernel takes what a call in a loop does") {
  const Machine& m = machine("dgx-h100");
  const double graph = microseconds(product(512, Precision::fp8), m);
  const double stream = microseconds(product(512, Precision::fp8, {.launch = Launched::stream}), m);
  CHECK(stream - graph == Approx(4.0 * m.calibration.host.loop_call_us));
  // A framework's operator is called once, whatever it launches.
  const auto norm = [&](Launched launch) {
    Operator op{"norm", Streaming{StreamingKind::reduction, 1.0_MB, 1.0_MB, {}}, Precision::fp32, 2};
    return microseconds({op, 1, {.launch = launch}}, m);
  };
  CHECK(norm(Launched::stream) - norm(Launched::graph) == Approx(m.calibration.host.framework_call_us));
}

TEST_CASE("A generation begins with its first chip and ends before the next one's") {
  CHECK(generation_of(0.0) == 0);
  for (std::size_t i = 0; i < chip_generations.size(); ++i) {
    CHECK(generation_of(chip_generations[i].compute_capability) == i);
    if (i > 0) CHECK(generation_of(chip_generations[i].compute_capability - 0.01) == i - 1);
  }
  CHECK(generation_of(2000.0) == chip_generations.size() - 1);
  CHECK(chip_generations[generation_of(8.7)].name == "ampere_8nm");
  CHECK(chip_generations[generation_of(99.0)].name == "blackwell_rtx");
}
