// The caching allocator's rounding, at its boundaries (constants of c10/cuda/CUDACachingAllocator.cpp).
#include "model/memory/allocator.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {
constexpr double mib = 1048576.0;
}

TEST_CASE("tensors that stay share segments where they are small") {
  // 5 of 1 KiB fit into one segment of 2 MiB; 5 of 8 MiB go two by two into three of 20 MiB; 3 of 11 MiB take 12 each.
  CHECK(segments_of({{Bytes(1024.0), 5}}).value() == 2 * mib);
  CHECK(segments_of({{Bytes(8 * mib), 5}}).value() == 60 * mib);
  CHECK(segments_of({{Bytes(11 * mib), 3}}).value() == 36 * mib);
  CHECK(segments_of({{Bytes(1024.0), 5}, {Bytes(11 * mib), 3}}).value() == 38 * mib);
  CHECK(segments_of({}).value() == 0.0);
}

TEST_CASE("a tensor of just 10 MiB has a segment of its own, a byte less shares one of 20 MiB") {
  CHECK(segments_of({{Bytes(10 * mib), 3}}).value() == 30 * mib);
  CHECK(segments_of({{Bytes(10 * mib - 512), 3}}).value() == 40 * mib);
  // And just 1 MiB is small: three lie in two segments of 2 MiB.
  CHECK(segments_of({{Bytes(mib), 3}}).value() == 4 * mib);
  CHECK(segments_of({{Bytes(mib + 512), 3}}).value() == 20 * mib);
  // Empty tensors take no memory.
  CHECK(segments_of({{Bytes(0.0), 5}}).value() == 0.0);
}
