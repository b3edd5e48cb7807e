// Inner loops of attention's kernels, by hand. Scores a clock of one multiprocessor: a head of 128 elements takes 512
// operations a score, an exponential 1/16 clock.
#include "model/cost/attention.hpp"
#include "model/cost/power.hpp"
#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Machine;
using foretrain::test::machine;

namespace {

Attention causal(AttentionKind kind, std::int64_t batch, std::int64_t heads, std::int64_t length,
                 std::int64_t head_dim = 128) {
  return test::attention(kind, batch, heads, length, head_dim, true);
}

double microseconds(const char* node, const Attention& work) {
  return machine(node).time(work, Precision::bf16).value() * 1e6;
}

/// Clocks of CUDA cores for one score's instructions beside the exponential.
double instruction_clocks(const Machine& m) {
  const double rate = m.gpu.vector_rate[static_cast<std::size_t>(Precision::fp32)].value();
  return 2.0 * m.calibration.attention.softmax_instructions / (rate / m.gpu.sms / m.gpu.boost_clock.value());
}

double products_clocks(const Machine& m, double operations) {
  return operations / (m.gpu.matrix_rate(Precision::bf16).value() / m.gpu.sms / m.gpu.boost_clock.value());
}

}  // namespace

TEST_CASE("Where all blocks run at once, attention takes as long as its longest") {
  // One head of 4,096: 32 blocks of 128 queries for 132 multiprocessors. The last sees all 4,096 keys; a score takes
  // its products, and half (exposed_share) of 512 / 64 bytes from shared memory at 128 a clock and of the softmax.
  const Machine& m = machine("dgx-h100");
  const AttentionConstants& c = m.calibration.attention;
  const double softmax = 1.0 / 16.0 + instruction_clocks(m);
  const double score = products_clocks(m, 512.0) + c.exposed_share * (512.0 / 64.0 / 128.0 + softmax);
  const double block = 128.0 * 4096.0 * score / m.gpu.boost_clock.value() * 1e6;
  // In a burst, as the board's power leaves 6 % less of the clock in the long run.
  const OperatorCost burst = m.burst(causal(AttentionKind::flash, 1, 1, 4096), Precision::bf16);
  CHECK(burst.device.value() * 1e6 == Approx(c.kernel_us + c.block_start_us + block).epsilon(0.006));
}

TEST_CASE("A block that is alone on its multiprocessor waits for its first softmax, its queries and its results") {
  // As above, 32 blocks for 132 multiprocessors, by an engine's kernel: 128 · 128 scores of what is shorter, softmax or
  // products, and 128 queries and results of 128 elements at a multiprocessor's share of the memory. The kernel before
  // it reads and writes queries, keys and values of 4,096.
  Machine m = machine("dgx-h100");
  m.gpu.board_power_watts = 0.0;  // no limit
  Attention work = causal(AttentionKind::flash, 1, 1, 4096);
  const double alone = m.time(work, Precision::bf16).value() * 1e6;
  work.cached = true;
  const double softmax = 1.0 / 16.0 + instruction_clocks(m);
  const double shorter = std::min(softmax, products_clocks(m, 512.0)) / m.gpu.boost_clock.value() * 1e6;
  const StreamingConstants& c = m.calibration.streaming;
  const double microsecond_bytes = m.gpu.memory_bandwidth.value() * c.bandwidth_efficiency * 1e-6;
  const double prepared = c.kernel_us + 2.0 * 3.0 * 4096.0 * 128.0 * 2.0 / microsecond_bytes;
  const double moved = 2.0 * 128.0 * 128.0 * 2.0 * m.gpu.sms / microsecond_bytes;
  CHECK(m.time(work, Precision::bf16).value() * 1e6 - alone ==
        Approx(prepared + 128.0 * 128.0 * shorter + moved).epsilon(1e-6));
}

TEST_CASE("An engine prepares its attention by a kernel that reads and writes the operands once") {
  const Machine& m = machine("dgx-h100");
  Attention work = causal(AttentionKind::flash, 64, 32, 1024);
  work.kv_heads = 8;
  work.cached = true;
  // Q of 64 · 32 · 1024 · 128 elements of two bytes, K and V of a quarter each.
  const double query = 64.0 * 32.0 * 1024.0 * 128.0 * 2.0;
  const StreamingConstants& c = m.calibration.streaming;
  const double microsecond_bytes = m.gpu.memory_bandwidth.value() * c.bandwidth_efficiency * 1e-6;
  Attention own_keys = work;
  own_keys.kv_heads = 32;
  CHECK(microseconds("dgx-h100", own_keys) - microseconds("dgx-h100", work) ==
        Approx(2.0 * 1.5 * query / microsecond_bytes).epsilon(1e-6));
  // FlashAttention-3's callers move keys and values alone.
  work.kind = AttentionKind::flash_3;
  const double prepared = microseconds("dgx-h100", work);
  work.cached = false;
  CHECK(prepared - microseconds("dgx-h100", work) ==
        Approx(c.kernel_us + 2.0 * 0.5 * query / microsecond_bytes).epsilon(1e-6));
  // Of a prompt's last 256 tokens, only these are new to the cache.
  work.kind = AttentionKind::flash;
  work.query_length = own_keys.query_length = 256;
  work.cached = true;
  CHECK(microseconds("dgx-h100", own_keys) - microseconds("dgx-h100", work) ==
        Approx(2.0 * 1.5 * 0.25 * query / microsecond_bytes).epsilon(1e-6));
}

TEST_CASE("FlashAttention-3 beside a cache splits keys where there are too few blocks for the device") {
  // 32 blocks of one head: four parts of 1,024 keys fill 128 of 132 multiprocessors, and no number of parts is more
  // than a seventh better. A kernel of its own reads four partial results in fp32 and writes one in bf16.
  const Machine& m = machine("dgx-h100");
  Attention work = causal(AttentionKind::flash_3, 1, 1, 4096);
  const double whole = microseconds("dgx-h100", work);
  work.cached = true;
  const AttentionConstants& c = m.calibration.attention;
  const StreamingConstants& s = m.calibration.streaming;
  const double tensor = 4096.0 * 128.0 * 2.0 / (m.gpu.memory_bandwidth.value() * s.bandwidth_efficiency * 1e-6);
  const double start = c.kernel_us + c.block_start_us;
  const double expected = start + (whole - start) / 4.0 + (s.kernel_us + 4.0 * tensor) + (s.kernel_us + 9.0 * tensor);
  CHECK(microseconds("dgx-h100", work) == Approx(expected).epsilon(1e-6));
  // Never with at most 512 keys, nor where blocks fill four fifths of the device.
  const auto extra = [](Attention shape) {
    const double alone = microseconds("dgx-h100", shape);
    shape.cached = true;
    return microseconds("dgx-h100", shape) - alone;
  };
  CHECK(extra(causal(AttentionKind::flash_3, 1, 1, 512)) > 0.0);
  CHECK(extra(causal(AttentionKind::flash_3, 1, 4, 4096)) > 0.0);
}

TEST_CASE("Where the exponentials decide, Blackwell Ultra's units are worth their number") {
  // Heads of 64: 256 operations take less than the softmax, which runs beside them: 1/16 clock and the instructions
  // against 1/32 and the same, less the blocks' starts and ends, which stay. Boards without a limit, as the products of
  // B200 take more power.
  const auto time = [](const char* node) {
    Machine unlimited = machine(node);
    unlimited.gpu.board_power_watts = 0.0;
    return unlimited.time(causal(AttentionKind::flash, 4, 64, 16384, 64), Precision::bf16);
  };
  const double softmax = instruction_clocks(machine("dgx-b200"));
  const double gain = time("dgx-b200") / time("hgx-b300");
  CHECK(gain < (1.0 / 16.0 + softmax) / (1.0 / 32.0 + softmax));
  CHECK(gain > 1.3);
}

TEST_CASE("Consumer Blackwell has neither warp groups nor tensor memory: FlashAttention-2, at the full rate") {
  const Attention work = causal(AttentionKind::flash, 4, 32, 8192);
  Machine m = machine("rtx-pro-6000-x8");
  m.gpu.board_power_watts = 0.0;  // no limit
  CHECK(!has_warp_groups(m.gpu));
  CHECK(attention_kernel(work, Precision::bf16, m.gpu) == AttentionKind::flash_2);
  // 1,024 operations a clock: the products decide, half of shared memory's (32 queries a warp) and the softmax on top.
  const double exposed = 512.0 / 32.0 / 128.0 + 1.0 / 16.0 + instruction_clocks(m);
  const double score = products_clocks(m, 512.0) + m.calibration.attention.exposed_share * exposed;
  const OperatorCost cost = m.cost(work, Precision::bf16);
  const double rate = 512.0 / score * m.gpu.sms * m.gpu.boost_clock.value();
  CHECK(cost.flops / cost.device / FlopsPerSecond(rate) == Approx(0.94).epsilon(0.01));
}

TEST_CASE("Gradients in a fixed order: one block of keys a multiprocessor at a time, FlashAttention-2 on Blackwell") {
  // A sum of dQ a head and multiprocessor: 108 heads fill an A100 once, the 109th takes a second round as long.
  const auto ordered = [](std::int64_t heads) {
    Attention work = test::attention(AttentionKind::flash, 1, heads, 8192);
    work.backward = work.deterministic = true;
    return work;
  };
  const Machine& m = machine("dgx-a100-80gb");
  const double once = microseconds("dgx-a100-80gb", ordered(m.gpu.sms));
  CHECK(microseconds("dgx-a100-80gb", ordered(m.gpu.sms + 1)) == Approx(2.0 * once).epsilon(0.03));
  CHECK(attention_kernel(ordered(8), Precision::bf16, machine("dgx-h100").gpu) == AttentionKind::flash);
  CHECK(attention_kernel(ordered(8), Precision::bf16, machine("dgx-b200").gpu) == AttentionKind::flash_2);
}
