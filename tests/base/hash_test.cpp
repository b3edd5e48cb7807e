#include "model/base/hash.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("FNV-1a as its authors publish it, and piece by piece the same") {
  // Test vectors of draft-eastlake-fnv, appendix C, 64 bits.
  CHECK(fnv_1a("") == 0xcbf29ce484222325ULL);
  CHECK(fnv_1a("a") == 0xaf63dc4c8601ec8cULL);
  CHECK(fnv_1a("foobar") == 0x85944171f73967e8ULL);
  CHECK(fnv_1a("bar", fnv_1a("foo")) == fnv_1a("foobar"));
}

TEST_CASE("SplitMix64 as the reference implementation begins from state 0") {
  // The first two numbers of Vigna's splitmix64.c, state 0.
  std::uint64_t state = 0;
  CHECK(split_mix(state) == 0xe220a8397b1dcdafULL);
  CHECK(split_mix(state) == 0x6e789e6aa1b965f4ULL);
  CHECK(state == 2 * split_mix_step);
}
