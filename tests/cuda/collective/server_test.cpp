// The parameter server's logic that needs no GPU: which key lives where, and sums on the host.
#include "tests/catch.hpp"
#include "validate/cuda/collective/host_adder.hpp"
#include "validate/cuda/collective/keys.hpp"

using namespace foretrain::gpu;

TEST_CASE("keys cover a bucket once, evenly, and go round the servers", "[collective][server]") {
  for (const std::uint64_t elements : {1ULL, 63ULL, 64ULL, 65ULL, 1000ULL, 25'000'001ULL}) {
    for (const int servers : {1, 2, 3}) {
      for (const int keys : {0, 1, 7}) {
        const auto cut = cut_into_keys(elements, servers, keys);
        std::uint64_t next = 0;
        for (const Key& key : cut) {
          CHECK(key.first == next);
          CHECK(key.first % key_alignment == 0);
          CHECK(key.server == key.index % servers);
          next = key.first + key.count;
        }
        CHECK(next == elements);
      }
    }
  }
  // 1,000 elements are 16 units of 64 (the last one short): two servers hold 8 units and 7 units and a bit.
  const auto two = cut_into_keys(1000, 2, 0);
  REQUIRE(two.size() == 2);
  CHECK(two[0].count == 512);
  CHECK(two[1].count == 488);
  CHECK(two[1].server == 1);
}

TEST_CASE("a bucket smaller than its keys uses fewer of them", "[collective][server]") {
  const auto cut = cut_into_keys(64, 4, 0);
  REQUIRE(cut.size() == 1);
  CHECK(cut[0].count == 64);
  CHECK(cut_into_keys(0, 4, 0).empty());
  CHECK_THROWS_AS(cut_into_keys(64, 0, 0), std::invalid_argument);
  CHECK_THROWS_AS(cut_into_keys(64, 1, -1), std::invalid_argument);
}

namespace {

std::vector<const float*> addresses(const std::vector<std::vector<float>>& inputs) {
  std::vector<const float*> list;
  for (const auto& input : inputs) list.push_back(input.data());
  return list;
}

}  // namespace

TEST_CASE("threads add what one adds, at sizes around where they begin to share", "[collective][server]") {
  HostAdder adder(3);
  CHECK(adder.threads() == 3);
  for (const std::size_t elements : {std::size_t{1}, std::size_t{32768}, std::size_t{32769}, std::size_t{100'003}}) {
    for (const std::size_t workers : {std::size_t{1}, std::size_t{2}, std::size_t{5}}) {
      std::vector<std::vector<float>> inputs(workers, std::vector<float>(elements));
      for (std::size_t w = 0; w < workers; ++w) {
        for (std::size_t i = 0; i < elements; ++i) inputs[w][i] = static_cast<float>((i * 7 + w * 13) % 61);
      }
      // One more than is written: what lies behind must stay.
      std::vector<float> sum(elements + 1, -1.0F);
      adder.add(sum.data(), addresses(inputs), elements);
      bool right = true;
      for (std::size_t i = 0; i < elements; ++i) {
        float expected = 0.0F;
        for (std::size_t w = 0; w < workers; ++w) expected += inputs[w][i];
        right = right && sum[i] == expected;
      }
      CHECK(right);
      CHECK(sum[elements] == -1.0F);
    }
  }
}
