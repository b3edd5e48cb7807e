// Bytes that attention moves and keeps, worked out by hand.
#include "model/cost/attention.hpp"
#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::machine;

namespace {

// 4 · 16 heads of 4096 × 64 in fp16: a tensor of 33.55 MB; a score for each pair: 2.147 GB.
constexpr double tensor = 4.0 * 16 * 4096 * 64 * 2;
constexpr double matrix = 4.0 * 16 * 4096 * 4096 * 2;
constexpr double log_sum = 4.0 * 16 * 4096 * 4;  // four bytes for each query

Attention with(AttentionKind kind, bool backward) {
  Attention work = test::attention(kind, 4, 16, 4096, 64);
  work.backward = backward;
  return work;
}
double traffic(const Attention& work) {
  return attention_traffic(work, Precision::fp16, machine("dgx-a100-80gb").gpu).value();
}
OperatorMemory memory(const Attention& work) {
  return attention_memory(work, Precision::fp16, machine("dgx-a100-80gb").gpu);
}

}  // namespace

TEST_CASE("Standard attention moves the scores four times forward, seven times backward") {
  // Q, K, V, O and: S written, S read and P written by the softmax, P read.
  CHECK(traffic(with(AttentionKind::standard, false)) == Approx(4 * tensor + 4 * matrix));
  // The same four and their gradients; dP written, P and dP read and dS written, P read, dS read twice.
  CHECK(traffic(with(AttentionKind::standard, true)) == Approx(8 * tensor + 7 * matrix));
  // Adding a mask reads and writes once more; dropout reads, writes, and writes a byte (half an element) of mask.
  Attention work = with(AttentionKind::standard, false);
  work.causal = true;
  CHECK(traffic(work) == Approx(4 * tensor + 6 * matrix));
  work.dropout = true;
  CHECK(traffic(work) == Approx(4 * tensor + 8.5 * matrix));
  work.fused_softmax = true;
  CHECK(traffic(work) == Approx(4 * tensor + 6.5 * matrix));
}

TEST_CASE("FlashAttention-2 reads and writes its operands, FlashAttention-1 partial outputs for every 256 keys") {
  CHECK(traffic(with(AttentionKind::flash_2, false)) == Approx(4 * tensor));
  // 4096 / 256 = 16 blocks of keys; for each, Q read (1 tensor) and O in fp32 read and written (2 tensors each).
  CHECK(traffic(with(AttentionKind::flash_1, false)) == Approx(4 * tensor + 16 * 5 * tensor));
  // Backward: Q, dO and dQ in fp32.
  CHECK(traffic(with(AttentionKind::flash_1, true)) == Approx(8 * tensor + 16 * 6 * tensor));
}

TEST_CASE("Traffic grows as N² for standard attention and FlashAttention-1, as N for FlashAttention-2") {
  const auto growth = [](AttentionKind kind) {
    Attention work = with(kind, false);
    const double before = traffic(work);
    work.query_length *= 2;
    work.key_length *= 2;
    return traffic(work) / before;
  };
  CHECK(growth(AttentionKind::standard) == Approx(4).epsilon(0.02));
  CHECK(growth(AttentionKind::flash_1) == Approx(4).epsilon(0.06));
  CHECK(growth(AttentionKind::flash_2) == Approx(2));
}

TEST_CASE("Keys that the L2 cannot hold are read again") {
  // One head of 10⁶ keys of 128 in fp16 is 512 MB, twelve times A100's L2: most of what 7813 blocks of queries read.
  Attention work = with(AttentionKind::flash_2, false);
  work.batch = work.heads = work.kv_heads = 1;
  work.head_dim = 128;
  work.query_length = work.key_length = 1'000'000;
  const double once = 4e6 * 128 * 2;
  const double again = 1e12 / 128 * 2 * 128 * 2;
  CHECK(traffic(work) > once + 0.9 * again);
  CHECK(traffic(work) < once + again);
}

TEST_CASE("Standard attention keeps the probabilities, the others a number for each query") {
  CHECK(memory(with(AttentionKind::standard, false)).saved.value() == Approx(4 * tensor + matrix));
  for (const AttentionKind kind : {AttentionKind::memory_efficient, AttentionKind::flash_1, AttentionKind::flash_2}) {
    CHECK(memory(with(kind, false)).saved.value() == Approx(4 * tensor + log_sum));
  }
  // With dropout also its mask, a byte each, and what it leaves.
  Attention work = with(AttentionKind::standard, false);
  work.dropout = true;
  CHECK(memory(work).saved.value() == Approx(4 * tensor + 2.5 * matrix));
}

TEST_CASE("Peaks: what is kept, the pass's workspace, and going back the gradients") {
  CHECK(memory(with(AttentionKind::standard, false)).peak.value() == Approx(4 * tensor + 2 * matrix));
  CHECK(memory(with(AttentionKind::standard, true)).peak.value() == Approx(8 * tensor + 3 * matrix));
  CHECK(memory(with(AttentionKind::flash_2, false)).workspace.value() == 0.0);
  // dQ in fp32 and the row sums.
  CHECK(memory(with(AttentionKind::flash_2, true)).peak.value() == Approx(8 * tensor + log_sum + 2 * tensor + log_sum));
  CHECK(memory(with(AttentionKind::flash_1, false)).workspace.value() == Approx(2 * tensor));
}

TEST_CASE("Heads that share keys keep fewer, and write their gradients apart before they are added up") {
  Attention work = with(AttentionKind::flash_2, false);
  work.kv_heads = 4;
  CHECK(memory(work).saved.value() == Approx(2.5 * tensor + log_sum));
  work.backward = true;
  CHECK(memory(work).workspace.value() == Approx(2 * tensor + log_sum + 2 * tensor));
}
