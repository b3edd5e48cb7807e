#include "model/cost/launches.hpp"
#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Machine;
using foretrain::test::machine;

namespace {

Streaming moving(StreamingKind kind, Bytes read, Bytes written, bool fusible = false) {
  return {kind, read, written, Flops(0), fusible};
}

}  // namespace

TEST_CASE("A large copy runs at 86 % of the datasheet's bandwidth") {
  // 1 GB read and 1 GB written at 0.86 · 2039 GB/s = 1141 us. Of what is as
  // large as this nothing is left in the L2.
  const OperatorCost cost =
      machine("dgx-a100-80gb").cost(moving(StreamingKind::elementwise, 1.0_GB, 1.0_GB), Precision::fp32);
  CHECK(cost.device.value() * 1e6 == Approx(1141 + 3.6).epsilon(0.001));
  CHECK(cost.bound == Bound::memory);
  CHECK(cost.bytes == 2.0_GB);
}

TEST_CASE("Nothing to move costs the kernels' fixed time") {
  // 3.6 us per kernel.
  const Machine& m = machine("dgx-a100-80gb");
  const Operator nothing{"", moving(StreamingKind::elementwise, Bytes(0), Bytes(0)), Precision::fp32, 4};
  const OperatorCost cost = operator_cost(nothing, m.gpu, m.calibration);
  CHECK(cost.device.value() * 1e6 == Approx(14.4));
  CHECK(cost.bound == Bound::latency);
  CHECK(cost.kernels == 4);
}

TEST_CASE("Small traffic is found in the L2, an optimizer's never is") {
  const Machine& m = machine("dgx-a100-80gb");
  const double warm = m.time(moving(StreamingKind::elementwise, 4.0_MB, 4.0_MB), Precision::fp32).value();
  const double cold = m.time(moving(StreamingKind::optimizer, 4.0_MB, 4.0_MB), Precision::fp32).value();
  CHECK(warm < cold);
  // 8 MB at 0.84 · 0.86 · 2039 GB/s and 3.6 us; warm, 4 MB of them at 0.86 · 5400 GB/s.
  CHECK(cold * 1e6 == Approx(8e6 / (0.84 * 0.86 * 2039e3) + 3.6).epsilon(1e-3));
  CHECK(warm * 1e6 == Approx(4e6 / (0.86 * 2039e3) + 4e6 / (0.86 * 5400e3) + 3.6).epsilon(1e-3));
  // Of twice the L2's 40 MiB nothing is left, of one and a half times a third.
  const double mib = 1024.0 * 1024.0;
  const auto saved = [&](double size) {
    const double without = size / (0.86 * 2039e9) + 3.6e-6;
    return without - m.time(moving(StreamingKind::elementwise, Bytes(size), Bytes(0)), Precision::fp32).value();
  };
  const double per_byte = 1.0 / (0.86 * 2039e9) - 1.0 / (0.86 * 5400e9);
  CHECK(saved(80 * mib) == Approx(0.0).margin(1e-12));
  CHECK(saved(60 * mib) == Approx(20 * mib * per_byte).epsilon(1e-6));
  CHECK(saved(40 * mib) == Approx(40 * mib * per_byte).epsilon(1e-6));
}

TEST_CASE("What kernels read again of a row comes from the L2 as far as rows under way lie there") {
  // 10,000 rows of 8 kB in and out, by 128 threads each: V100's 80 multiprocessors have 16 each under way, 1,280 rows
  // and 21 MB with what they wrote, 3.33 times 6 MiB: 0.78 of it is read from memory again, as 0.78 of 82 MB. Of rows
  // of 1 kB, 2.6 MB, nothing is, and what the L2 gives hides behind what memory gives.
  const Machine& m = machine("dgx1-v100-16gb");
  const auto again = [&](Bytes row) {
    Streaming norm = moving(StreamingKind::reduction, 1e4 * row, 1e4 * row);
    norm.rows = {1e4, 128.0, 2.0 * row, 1e4 * row};
    return (m.time(norm, Precision::fp32) - Seconds(2e4 * row.value() / (0.86 * 900e9) + 3.6e-6)).value();
  };
  const double under_way = 1280.0 * 16384.0 / (6.0 * 1024 * 1024);
  CHECK(again(Bytes(8192.0)) == Approx((under_way - 1.0) / 3.0 * 81.92e6 / (0.86 * 900e9)).epsilon(1e-3));
  CHECK(again(Bytes(512.0)) < 0.0);  // 5 MB of 10 are in the L2 from before
}

TEST_CASE("Instructions of a row take turns with its traffic as legs of a right-angled triangle") {
  // 80 rows of 30,000 instructions, one on each of V100's multiprocessors, which issues four a clock. Moving 3.096 MB
  // at 0.86 · 900 GB/s takes 4 us. An 81st row takes as long as 80 more.
  const Machine& m = machine("dgx1-v100-16gb");
  const auto time = [&](double rows, double instructions) {
    Streaming norm = moving(StreamingKind::elementwise, Bytes(0), Bytes(3.096e6));
    norm.rows = {rows, 128.0, Bytes(0.0), Bytes(0.0), instructions};
    return m.time(norm, Precision::fp32).value() * 1e6 - 3.6;
  };
  const double moved = 4.0, issued = 30000.0 / 4.0 / m.gpu.boost_clock.value() * 1e6;
  CHECK(time(80, 30000) == Approx(std::hypot(moved, issued)));
  CHECK(time(81, 30000) == Approx(std::hypot(moved, 2.0 * issued)));
}

TEST_CASE("Repeated by itself, an operator finds in the L2 what all that it moves has left there") {
  // V100: of 6 MiB read and 3 MiB written in each call, 3 MiB of 9 are left, and two thirds of these were read.
  const Machine& m = machine("dgx1-v100-16gb");
  Streaming work = moving(StreamingKind::reduction, 6.0_MiB, 3.0_MiB);
  const Seconds after_producer = m.time(work, Precision::fp32);  // which has just written all 6 MiB
  work.repeated = true;
  const double per_byte = 1.0 / (0.86 * 900e9) - 1.0 / (0.86 * m.gpu.l2_bandwidth.value());
  CHECK((m.time(work, Precision::fp32) - after_producer).value() == Approx(4.0 * 1024 * 1024 * per_byte).epsilon(1e-6));
}

TEST_CASE("Numbers that are taken one at a time wait for the memory's latency, whatever its bandwidth") {
  // 830 are on their way to each of H200's 132 multiprocessors for 340 ns: 100 million take 310 us, where 200 MB read
  // and 400 MB written would take 145. On V100 bytes take longer, as they do anywhere without such numbers.
  Streaming widened = moving(StreamingKind::elementwise, 0.2_GB, 0.4_GB);
  const auto microseconds = [&](const char* node, double singles) {
    widened.singles = singles;
    return machine(node).time(widened, Precision::bf16).value() * 1e6;
  };
  CHECK(microseconds("h200-x1", 100e6) == Approx(310 + 3.6).epsilon(0.01));
  CHECK(microseconds("h200-x1", 0.0) == Approx(145 + 3.6).epsilon(0.03));
  CHECK(microseconds("dgx1-v100-16gb", 100e6) == microseconds("dgx1-v100-16gb", 0.0));
}

TEST_CASE("Norms run as fast as copies of the same size, look-ups slower") {
  const Machine& m = machine("dgx-h100");
  const auto time = [&](StreamingKind kind) { return m.time(moving(kind, 1.0_GB, 1.0_GB), Precision::bf16); };
  CHECK(time(StreamingKind::elementwise) == time(StreamingKind::reduction));
  CHECK(time(StreamingKind::reduction) < time(StreamingKind::gather));
}

TEST_CASE("Merged into its producer, an operator pays for further inputs only") {
  const Machine& m = machine("dgx-a100-80gb");
  const auto cost = [&](Bytes read, bool fusible, bool fused) {
    const Operator op{"", moving(StreamingKind::elementwise, read, 1.0_GB, fusible), Precision::bf16, 1};
    return operator_cost(op, m.gpu, m.calibration, fused);
  };
  // An activation reads what the producer would have written, and writes as much: nothing is left.
  CHECK(cost(1.0_GB, true, true).device == Seconds(0));
  CHECK(cost(1.0_GB, true, true).kernels == 0);
  // A sum of two tensors reads one more: 1 GB at 0.86 · 2039 GB/s = 570 us.
  CHECK(cost(2.0_GB, true, true).device.value() * 1e6 == Approx(570).epsilon(0.01));
  // Work that cannot be merged, or is not, keeps its cost.
  CHECK(cost(1.0_GB, false, true).device == cost(1.0_GB, false, false).device);
  CHECK(cost(1.0_GB, true, false).kernels == 1);
}

TEST_CASE("Host time: per kernel in eager and compiled execution, once for a graph") {
  const HostConstants constants{.dispatch_us = TrackedNumber(7),
                                .compiled_dispatch_us = TrackedNumber(3),
                                .graph_launch_us = TrackedNumber(15),
                                .launch_latency_us = TrackedNumber(4)};
  const auto microseconds = [&](int kernels, ExecutionMode mode) {
    return host_dispatch_time(kernels, mode, constants).value() * 1e6;
  };
  CHECK(microseconds(100, ExecutionMode::eager) == Approx(700));
  CHECK(microseconds(100, ExecutionMode::compiled) == Approx(300));
  CHECK(microseconds(100, ExecutionMode::cuda_graph) == Approx(15));
  CHECK(microseconds(0, ExecutionMode::cuda_graph) == 0.0);
  CHECK(launch_latency(constants).value() * 1e6 == Approx(4));
}
