#include "model/workload/attention.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

// Query i of q stands at position k - q + i of k, counted from 1. It sees key j unless a causal mask hides it or the
// window, whose width counts itself, ends before it.
double counted(std::int64_t q, std::int64_t k, bool causal, std::int64_t window) {
  double pairs = 0.0;
  for (std::int64_t i = 1; i <= q; ++i) {
    for (std::int64_t j = 1; j <= k; ++j) {
      const std::int64_t position = k - q + i;
      const bool hidden = causal && j > position;
      const bool outside = window > 0 && std::abs(position - j) >= window;
      if (!hidden && !outside) pairs += 1.0;
    }
  }
  return pairs;
}

}  // namespace

TEST_CASE("Pairs that masks leave are those that one counts") {
  for (const bool causal : {false, true}) {
    for (const std::int64_t window : {0, 1, 2, 5, 11, 12, 40}) {
      for (const auto& [q, k] : {std::pair{1, 1}, {1, 12}, {12, 12}, {5, 12}, {11, 12}}) {
        INFO("queries " << q << " keys " << k << " causal " << causal << " window " << window);
        CHECK(attended_pairs(q, k, causal, window) == counted(q, k, causal, window));
      }
    }
  }
  CHECK(attended_pairs(12, 5, true, 0) == counted(12, 5, true, 0));  // the first seven queries see nothing
}

TEST_CASE("Packing adds up what its sequences have") {
  const std::vector<std::int64_t> lengths = {100, 128, 129, 1};
  const Packing packing = pack(lengths, true, 0);
  CHECK(packing.sequences == 4);
  CHECK(packing.tokens == 358);
  CHECK(packing.longest == 129);
  CHECK(packing.blocks == 1 + 1 + 2 + 1);
  CHECK(packing.pairs == 5050 + 8256 + 8385 + 1);  // n (n + 1) / 2
}

TEST_CASE("A mask hides something or it is none") {
  Attention work{.query_length = 100, .key_length = 100};
  CHECK_FALSE(work.masked());
  work.window = 100;
  CHECK_FALSE(work.masked());
  work.window = 99;
  CHECK(work.masked());
  work.window = 0;
  work.packing = pack(std::vector<std::int64_t>{50, 50}, false, 0);
  CHECK_FALSE(work.masked());
  work.packing = pack(std::vector<std::int64_t>{49, 51}, false, 0);  // padded to 51 each
  CHECK(work.masked());
}

TEST_CASE("Scores are the pairs of all heads that masks and sparsity leave") {
  Attention work{.batch = 2, .heads = 8, .kv_heads = 2, .query_length = 100, .key_length = 100, .head_dim = 64};
  CHECK(scores(work) == 16 * 100 * 100);
  // Q and O have 8 heads, K and V two: 2 · 2 · 100 · 64 · (8 + 2) elements.
  CHECK(work.traffic(Bytes(2.0)).value() == 2 * 256000);
  work.causal = true;  // 1 + 2 + … + 100 = 5050 per head
  CHECK(scores(work) == 16 * 5050);
  work.key_length = 300;  // queries are the last 100 of 300: 201 + … + 300 = 25050
  CHECK(scores(work) == 16 * 25050);
  work.density = 0.5;  // by blocks
  CHECK(scores(work) == 8 * 25050);
  // Q Kᵀ and P V take 2 · 64 FLOPs a score each; dV, dP, dQ and dK as much again each.
  CHECK(work.operations().value() == 8.0 * 25050 * 2 * 128);
  work.backward = true;
  CHECK(work.operations().value() == 8.0 * 25050 * 4 * 128);
}
