#include "model/cost/attention.hpp"

#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Machine;
using foretrain::test::machine;

namespace {

constexpr Attention long_heads = test::attention(AttentionKind::flash, 2, 32, 8192);

Attention with(Attention work, bool causal, AttentionKind kind, bool backward) {
  work.causal = causal;
  work.kind = kind;
  work.backward = backward;
  return work;
}

double seconds(const char* node, const Attention& work, Precision precision = Precision::bf16) {
  return machine(node).time(work, precision).value();
}

}  // namespace

TEST_CASE("The backward pass multiplies five times instead of twice, less efficiently") {
  // 2.5 times the products, and twice as many bytes from shared memory for each: with a matrix instruction and a byte
  // of 1/16 of its operations as long as each other (A100), 30 % of one exposed, 2.5 · 1.3 / 1.15 = 2.83 times. Adding
  // up dQ takes a little more, the softmax stays.
  const double forward = seconds("dgx-a100-80gb", long_heads);
  const double backward = seconds("dgx-a100-80gb", with(long_heads, false, AttentionKind::flash, true));
  CHECK(backward / forward > 2.4);
  CHECK(backward / forward < 2.97);
}

TEST_CASE("One head cannot fill the device") {
  // One head of 4096 queries is 32 blocks for 108 multiprocessors: they all run at once, and so do two heads.
  Attention work = long_heads;
  work.batch = work.heads = work.kv_heads = 1;
  work.query_length = work.key_length = 4096;
  const double one = seconds("dgx-a100-80gb", work);
  work.heads = work.kv_heads = 2;
  CHECK(seconds("dgx-a100-80gb", work) < 1.15 * one);
  work.heads = work.kv_heads = 64;  // 2048 blocks, 19 rounds
  CHECK(seconds("dgx-a100-80gb", work) > 15 * one);
}

TEST_CASE("Time never falls as attention grows") {
  for (const char* node : {"dgx1-v100-16gb", "dgx-a100-80gb", "dgx-h100"}) {
    for (const AttentionKind kind : test::attention_kinds) {
      for (const bool backward : {false, true}) {
        double last_sequence = 0.0, last_heads = 0.0, last_dim = 0.0;
        for (std::int64_t i = 1; i < 200; ++i) {
          const auto rises = [&](std::int64_t heads, std::int64_t sequence, std::int64_t head_dim, double& last) {
            const Attention plain = with(test::attention(kind, 1, heads, sequence, head_dim), false, kind, backward);
            const Attention work = with(plain, i % 2 == 0, kind, backward);
            const double time = seconds(node, plain, Precision::fp16);
            INFO(node << " kind " << static_cast<int>(kind) << " backward " << backward << " step " << i);
            CHECK(time >= last * (1 - 1e-9));
            last = time;
            CHECK(seconds(node, work, Precision::fp16) > 0.0);
          };
          // Scores in memory are operands of products, which are faster where their rows are aligned.
          const std::int64_t step = kind == AttentionKind::standard ? 8 : 1;
          rises(8, step == 1 ? 37 * i : 40 * i, 64, last_sequence);
          rises(i, 1024, 64, last_heads);
          rises(8, 1024, step * i, last_dim);
        }
      }
    }
  }
}

TEST_CASE("Steps of a ring are slower than the same products in one kernel") {
  // Two context ranks of 8,192 tokens: two steps of 4,096 x 4,096, at the share of the speed that was fitted to
  // trainings.
  Attention steps = with(long_heads, true, AttentionKind::flash, false);
  steps.query_length = steps.key_length = 4096;
  Attention ring = steps;
  ring.ring = true;
  CHECK(seconds("dgx-h100", ring) ==
        Approx(seconds("dgx-h100", steps) / machine("dgx-h100").calibration.attention.ring_share));
}

TEST_CASE("A head's rows fill blocks of 128, the last of which may have one") {
  Attention work;
  work.batch = 2;
  work.heads = 3;
  for (const auto& [length, blocks] : {std::pair(1, 1), std::pair(128, 1), std::pair(129, 2), std::pair(256, 2)}) {
    work.query_length = length;
    CHECK(query_rows(work).rows == 6.0 * length);
    CHECK(query_rows(work).blocks == 6.0 * blocks);
  }
}
