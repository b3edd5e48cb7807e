// Walks over a working set, on a processor of round figures.
#include "model/cost/memory_hierarchy.hpp"

#include "model/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/cost/processors.hpp"

using namespace foretrain;
using foretrain::test::round_cpu;

namespace {

constexpr double kib = 1024.0, mib = 1048576.0;

MemoryWalk chase(double bytes) {
  MemoryWalk walk;
  walk.working_set = Bytes(bytes);
  walk.pattern = WalkPattern::pointer_chase;
  walk.huge_pages = true;
  return walk;
}

MemoryWalk in_order(double bytes, WalkAccess access = WalkAccess::read) {
  MemoryWalk walk;
  walk.working_set = Bytes(bytes);
  walk.access = access;
  walk.huge_pages = true;
  return walk;
}

double nanoseconds(const MemoryWalk& walk, const Cpu& cpu = round_cpu()) {
  return memory_walk_cost(walk, cpu).per_access.value() * 1e9;
}
double gigabytes_per_second(const MemoryWalk& walk, const Cpu& cpu = round_cpu()) {
  const WalkCost cost = memory_walk_cost(walk, cpu);
  return cost.bytes.value() / cost.time.value() * 1e-9;
}

}  // namespace

TEST_CASE("Share of a cache: LRU keeps a set whole or, in a cycle, nothing of it") {
  // Sets that are all alike: eight lines fit into eight ways, nine do not, and visited in a cycle each is evicted just
  // before its turn. In random order eight of the nine are there.
  CHECK(cache_share(8.0, 8, true, true) == 1.0);
  CHECK(cache_share(9.0, 8, true, true) == 0.0);
  CHECK(cache_share(9.0, 8, true, false) == Approx(8.0 / 9.0));
  // One line per set on average, direct mapped, pages at random: P(X = 0) = 1/e is the share of lines that are alone
  // in their set; in random order a set keeps one line of X >= 1, (1 - 1/e) sets over 1 line.
  CHECK(cache_share(1.0, 1, false, true) == Approx(std::exp(-1.0)));
  CHECK(cache_share(1.0, 1, false, false) == Approx(1.0 - std::exp(-1.0)));
  // Sixteen pages for each of sixteen ways: P(X <= 15) of a Poisson variable of mean 16 is 0.467 (tables).
  CHECK(cache_share(16.0, 16, false, true) == Approx(0.467).epsilon(0.01));
  // Nothing to hold is held; far too much leaves nothing.
  CHECK(cache_share(0.0, 8, false, true) == 1.0);
  CHECK(cache_share(5000.0, 16, false, true) == Approx(0.0).margin(1e-12));
}

TEST_CASE("A chain of loads takes the latency of the level that holds it") {
  CHECK(nanoseconds(chase(16 * kib)) == Approx(1.0));
  CHECK(nanoseconds(chase(128 * kib)) == Approx(4.0));
  CHECK(nanoseconds(chase(4 * mib)) == Approx(16.0));
  CHECK(nanoseconds(chase(32 * mib)) == Approx(100.0));  // 16 huge pages, 32 entries: translation is known
  CHECK(memory_walk_cost(chase(4 * mib), round_cpu()).bound == "L3");
  CHECK(memory_walk_cost(chase(32 * mib), round_cpu()).bound == "memory");
}

TEST_CASE("Pages that the TLB does not hold add a hit in its second level, or a walk") {
  // 128 KiB in 32 small pages: all of 64 entries suffice. 1 MiB of the L3 in 256 pages: three of four loads miss the
  // first level, 2 ns each.
  MemoryWalk walk = chase(128 * kib);
  walk.huge_pages = false;
  CHECK(nanoseconds(walk) > 4.0);     // but small pages fall on the L2's sets at random, and some sets overflow
  walk.working_set = Bytes(4 * mib);  // 1024 pages: all in the second level, 1 - 64/1024 of them not in the first
  CHECK(nanoseconds(walk) == Approx(16.0 + 2.0 * (1.0 - 64.0 / 1024.0)).epsilon(1e-3));
  // 256 MiB: 65,536 pages; 1024 of them are known. A walk loads an entry of a table of 512 KiB, of which the L3 is the
  // first to hold eight times as much: 16 ns, after 2 ns in the second level. First-level hits are too few to matter.
  walk.working_set = Bytes(256 * mib);
  const double walks = 1.0 - 1024.0 / 65536.0;
  CHECK(nanoseconds(walk) == Approx(100.0 + walks * (2.0 + 16.0)).epsilon(1e-3));
  // A virtual machine walks two tables; its huge pages save the first, but the TLB still knows small pages alone.
  Cpu guest = round_cpu();
  guest.hierarchy->virtualised = true;
  CHECK(nanoseconds(walk, guest) == Approx(100.0 + walks * (2.0 + 32.0)).epsilon(1e-3));
  CHECK(nanoseconds(chase(256 * mib), guest) == Approx(nanoseconds(walk)).epsilon(1e-3));
  // 512 MiB: a table of 1 MiB is an eighth of the L3, two tables are too much for it: both steps load from memory.
  walk.working_set = Bytes(512 * mib);
  const double more_walks = 1.0 - 1024.0 / 131072.0;
  CHECK(nanoseconds(walk) == Approx(100.0 + more_walks * (2.0 + 16.0)).epsilon(1e-3));
  CHECK(nanoseconds(walk, guest) == Approx(100.0 + more_walks * (2.0 + 200.0)).epsilon(1e-3));
}

TEST_CASE("Of more pages than the TLB's first level knows, a walk in order finds none there") {
  // A page and a line apart, so that all lie in the L1, which two loads a cycle of 0.25 ns read. Of 100 pages each has
  // lost its entry, one of 64, when its turn comes: 2 ns in the second level, of ten loads at once.
  MemoryWalk walk = in_order(100 * 4160.0);
  walk.huge_pages = false;
  walk.pattern = WalkPattern::strided;
  walk.stride = Bytes(4160.0);
  CHECK(nanoseconds(walk) == Approx(2.0 / 10));
  CHECK(memory_walk_cost(walk, round_cpu()).bound == "TLB");
  walk.working_set = Bytes(60 * 4160.0);
  CHECK(nanoseconds(walk) == Approx(0.25 / 2));
}

TEST_CASE("Walks in order run at the level's bandwidth, memory's by what a core has in flight") {
  CHECK(gigabytes_per_second(in_order(16 * kib)) == Approx(128.0));
  CHECK(gigabytes_per_second(in_order(128 * kib)) == Approx(64.0));
  CHECK(gigabytes_per_second(in_order(4 * mib)) == Approx(32.0));
  // Little's law: 20 lines of 64 bytes per 100 ns.
  CHECK(gigabytes_per_second(in_order(64 * mib)) == Approx(12.8));
  // Writing fetches each line and casts it out. A copy fetches two lines, 10 ns, while one leaves, which alone would
  // take as long: 64 bytes in 10 ns.
  CHECK(gigabytes_per_second(in_order(64 * mib, WalkAccess::write)) == Approx(6.4));
  CHECK(gigabytes_per_second(in_order(64 * mib, WalkAccess::copy)) == Approx(6.4));
  CHECK(gigabytes_per_second(in_order(4 * mib, WalkAccess::write)) == Approx(16.0));
}

TEST_CASE("Cores share what lies beyond them") {
  MemoryWalk walk = in_order(64 * mib);
  walk.threads = 2;  // 2 x 12.8 are the channels' 25.6
  CHECK(gigabytes_per_second(walk) == Approx(25.6));
  walk.threads = 4;
  CHECK(gigabytes_per_second(walk) == Approx(25.6));
  walk.working_set = Bytes(4 * mib);  // four cores would read 128 GB/s of an L3 that gives 64
  CHECK(gigabytes_per_second(walk) == Approx(64.0));
  // Parts of 512 KiB each lie in four L2s: private bandwidth adds up (half-filled sets: 128 KiB each).
  walk.working_set = Bytes(512 * kib);
  CHECK(gigabytes_per_second(walk) == Approx(4 * 64.0));
}

TEST_CASE("Memory of the other socket is farther away, and all cores share the link to it") {
  Cpu cpu = round_cpu();
  cpu.sockets = 2;
  cpu.hierarchy->remote_latency = Seconds(200e-9);
  cpu.hierarchy->remote_bandwidth = BytesPerSecond(16e9);
  MemoryWalk walk = chase(32 * mib);
  walk.remote = true;
  CHECK(nanoseconds(walk, cpu) == Approx(200.0));
  walk = in_order(64 * mib);
  walk.remote = true;
  CHECK(gigabytes_per_second(walk, cpu) == Approx(6.4));  // 20 lines in 200 ns
  walk.threads = 4;
  CHECK(gigabytes_per_second(walk, cpu) == Approx(16.0));
}

TEST_CASE("A stride beyond the prefetchers costs a latency per fill buffer") {
  MemoryWalk walk = in_order(1024 * mib);
  walk.pattern = WalkPattern::strided;
  walk.stride = Bytes(64.0);
  CHECK(nanoseconds(walk) == Approx(5.0));  // a line: 64 B at 12.8 GB/s
  walk.stride = Bytes(256.0);
  CHECK(nanoseconds(walk) == Approx(5.0));  // still one line each
  walk.stride = Bytes(8.0);
  CHECK(nanoseconds(walk) == Approx(5.0 / 8.0));  // eight to a line
  // No prefetcher: ten loads in flight, 100 ns each.
  walk.stride = Bytes(64 * kib);
  walk.working_set = Bytes(16384 * mib);
  CHECK(nanoseconds(walk) >= 10.0);
  CHECK(nanoseconds(walk) < 12.5);  // page walks overlap with each other
  // If a prefetcher completes pairs of lines, a stride of two or more fetches twice what it uses.
  Cpu pairs = round_cpu();
  pairs.hierarchy->fetch = Bytes(128.0);
  walk.working_set = Bytes(1024 * mib);
  walk.stride = Bytes(256.0);
  CHECK(nanoseconds(walk, pairs) == Approx(10.0));
  walk.stride = Bytes(64.0);
  CHECK(nanoseconds(walk, pairs) == Approx(5.0));
}

TEST_CASE("Strides of a power of two use few sets") {
  // 4 KiB apart, every place of an L1 whose ways are a page falls on the same set: eight fit, nine do not.
  MemoryWalk walk = in_order(32 * kib);
  walk.pattern = WalkPattern::strided;
  walk.stride = Bytes(4 * kib);
  CHECK(memory_walk_cost(walk, round_cpu()).bound == "L1");
  walk.working_set = Bytes(36 * kib);
  CHECK(memory_walk_cost(walk, round_cpu()).bound == "L2");
}

TEST_CASE("Direction and alignment") {
  MemoryWalk walk = in_order(16 * mib);
  MemoryWalk backward = walk, alternating = walk;
  backward.direction = WalkDirection::backward;
  alternating.direction = WalkDirection::alternating;
  CHECK(nanoseconds(backward) == nanoseconds(walk));
  // There and back over twice the L3: half of each pass is still there, at 32 instead of 12.8 GB/s (and a sixteenth of
  // that in the L2 and L1).
  CHECK(nanoseconds(alternating) < 0.75 * nanoseconds(walk));
  CHECK(nanoseconds(alternating) > 0.65 * nanoseconds(walk));
  // 32-byte vectors from 8 bytes on: every second crosses a line and takes the L1 twice.
  MemoryWalk unaligned = in_order(16 * kib);
  const double aligned = nanoseconds(unaligned);
  unaligned.offset = Bytes(8.0);
  CHECK(nanoseconds(unaligned) == Approx(1.5 * aligned));
  unaligned.offset = Bytes(32.0);  // a multiple of the vector crosses nothing
  CHECK(nanoseconds(unaligned) == Approx(aligned));
}

TEST_CASE("No access becomes faster in a larger working set, and order never costs") {
  Cpu shared = round_cpu();
  shared.hierarchy->caches[2].residence = Seconds(1e-3);
  for (const WalkPattern pattern : {WalkPattern::pointer_chase, WalkPattern::random, WalkPattern::sequential}) {
    for (const bool huge : {false, true}) {
      double last = 0.0, last_shared = 0.0;
      for (double size = 4 * kib; size < 4096 * mib; size *= 1.3) {
        MemoryWalk walk = in_order(std::floor(size / 64.0) * 64.0);
        walk.pattern = pattern;
        walk.huge_pages = huge;
        const double time = nanoseconds(walk);
        INFO(size);
        REQUIRE(time >= last * (1.0 - 1e-9));
        last = time;
        const double beside_others = nanoseconds(walk, shared);
        REQUIRE(beside_others >= last_shared * (1.0 - 1e-3));
        REQUIRE(beside_others >= time * (1.0 - 1e-9));
        last_shared = beside_others;
      }
    }
  }
  for (double stride = 64.0; stride <= 4096.0; stride *= 2.0) {
    MemoryWalk sequential = in_order(512 * mib), strided = in_order(512 * mib);
    sequential.element = Bytes(8.0);
    strided.pattern = WalkPattern::strided;
    strided.stride = Bytes(stride);
    CHECK(nanoseconds(strided) >= nanoseconds(sequential));
  }
}

TEST_CASE("What the processor has not is refused") {
  Cpu unknown = round_cpu();
  unknown.hierarchy.reset();
  CHECK_THROWS_AS(memory_walk_cost(chase(1 * mib), unknown), ImpossiblePlan);
  MemoryWalk walk = chase(1 * mib);
  walk.threads = 5;
  CHECK_THROWS_AS(memory_walk_cost(walk, round_cpu()), ImpossiblePlan);
  walk.threads = 1;
  walk.remote = true;
  CHECK_THROWS_AS(memory_walk_cost(walk, round_cpu()), ImpossiblePlan);
}

TEST_CASE("A victim cache holds what falls out of the level above beside that, another one its copy as well") {
  // 8 MiB of L3 behind 512 KiB of L2: read in a cycle, 8.5 MiB just fit into both together (16 lines for each set of 16
  // ways), and one line for every set more does not fit at all.
  Cpu victim = round_cpu();
  victim.hierarchy->caches[2].victim = true;
  CHECK(nanoseconds(chase(8.5 * mib), victim) == Approx(16.0));
  CHECK(nanoseconds(chase(8.5 * mib)) == Approx(100.0));
  CHECK(nanoseconds(chase(8.5 * mib + 544 * kib), victim) == Approx(100.0));
  CHECK(nanoseconds(chase(8.0 * mib)) == Approx(16.0));
}
