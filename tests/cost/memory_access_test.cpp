// R6: sequential, strided, random and dependent reads at each level of a GPU's memory hierarchy.
#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Machine;
using foretrain::test::machine;

namespace {

// Round numbers: 1 GHz, 10 multiprocessors with 100 KB of L1 each, 10 MB L2 at 4 TB/s, 1 TB/s of device memory.
Machine round_numbers() {
  Machine m;
  m.gpu.sms = 10;
  m.gpu.boost_clock = Hertz(1e9);
  m.gpu.shared_memory_per_sm = Bytes(100e3);
  m.gpu.l2_cache = Bytes(10e6);
  m.gpu.l2_bandwidth = BytesPerSecond(4e12);
  m.gpu.memory_bandwidth = BytesPerSecond(1e12);
  m.gpu.memory_latency = Seconds(500e-9);
  m.calibration.streaming.bandwidth_efficiency = 1.0;
  m.calibration.streaming.kernel_us = 0.0;
  m.calibration.access = {.l1_cycles = TrackedNumber(30.0), .l2_cycles = TrackedNumber(200.0)};
  return m;
}

constexpr Bytes large(1e12);

double nanoseconds_per_read(const MemoryAccess& work) {
  return round_numbers().time(work, Precision::fp32).value() * 1e9 / work.reads;
}

MemoryAccess strided(double bytes) { return {AccessPattern::strided, 1e9, Bytes(4), Bytes(bytes), large}; }

}  // namespace

TEST_CASE("Neighbouring reads use every byte that moves") {
  // 10⁹ reads of 4 B from device memory at 1 TB/s: 4 ms, 0.004 ns each.
  const MemoryAccess work{AccessPattern::sequential, 1e9, Bytes(4), {}, large};
  CHECK(nanoseconds_per_read(work) == Approx(0.004).epsilon(1e-3));
}

TEST_CASE("Strided reads move whole sectors: time grows with the stride up to 32 bytes and stays there") {
  // A stride of 4 B is sequential; of 8 B uses half of each sector, of 16 B a quarter; from 32 B on each read has a
  // sector of its own, eight times the bytes that it asked for.
  CHECK(nanoseconds_per_read(strided(4)) == Approx(0.004).epsilon(1e-3));
  CHECK(nanoseconds_per_read(strided(8)) == Approx(0.008).epsilon(1e-3));
  CHECK(nanoseconds_per_read(strided(16)) == Approx(0.016).epsilon(1e-3));
  for (const double stride : {32.0, 64.0, 128.0, 4096.0}) {
    CHECK(nanoseconds_per_read(strided(stride)) == Approx(0.032).epsilon(1e-3));
  }
}

TEST_CASE("Random reads of words waste seven eighths of the bandwidth, of whole sectors nothing") {
  const MemoryAccess words{AccessPattern::random, 1e9, Bytes(4), {}, large};
  const MemoryAccess sectors{AccessPattern::random, 1e9, Bytes(32), {}, large};
  CHECK(nanoseconds_per_read(words) == Approx(0.032).epsilon(1e-3));
  CHECK(nanoseconds_per_read(sectors) == Approx(0.032).epsilon(1e-3));
}

TEST_CASE("A chain of dependent reads waits for the latency of its level each time") {
  // One thread on one multiprocessor: 30 cycles of 1 ns in the L1 (90 KB), 200 in the L2, 500 ns from device memory.
  const auto at = [](double working_set) {
    return nanoseconds_per_read({AccessPattern::dependent, 1e6, Bytes(4), {}, Bytes(working_set)});
  };
  CHECK(at(50e3) == Approx(30.0));
  CHECK(at(150e3) == Approx(200.0));  // another multiprocessor's L1 is of no use
  CHECK(at(5e6) == Approx(200.0));
  CHECK(at(40e6) == Approx(0.25 * 200.0 + 0.75 * 500.0));
  CHECK(round_numbers().cost(MemoryAccess{AccessPattern::dependent, 1e6, Bytes(4), {}, large}, Precision::fp32).bound ==
        Bound::latency);
}

TEST_CASE("Time never falls as the working set or the stride grows") {
  for (const char* node : {"dgx1-v100-16gb", "t4-x1", "dgx-a100-80gb", "dgx-h100"}) {
    const Machine& m = machine(node);
    for (const AccessPattern pattern : {AccessPattern::sequential, AccessPattern::random, AccessPattern::dependent}) {
      double before = 0.0;
      for (double working_set = 1e3; working_set < 1e11; working_set *= 1.3) {
        const double time =
            m.time(MemoryAccess{pattern, 1e6, Bytes(4), {}, Bytes(working_set)}, Precision::fp32).value();
        INFO(node << " " << working_set);
        CHECK(time >= before * (1 - 1e-12));
        before = time;
      }
    }
  }
}
