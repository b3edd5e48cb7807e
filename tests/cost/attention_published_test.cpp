// R14: the text's times and memory of attention confronted with arithmetic, and its crossover by length.
#include "model/cost/attention.hpp"
#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::machine;

namespace {

struct Run {
  Scenario scenario;
  Operator op;

  explicit Run(const std::string& name)
      : scenario(load_scenario(FORETRAIN_SOURCE_DIR "/scenarios/runs/" + name + ".yaml")),
        op(std::get<OperatorWorkload>(scenario.workload).op) {}
  [[nodiscard]] const Gpu& gpu() const { return scenario.cluster.node.gpu; }
  [[nodiscard]] Attention& work() { return std::get<Attention>(op.work); }
  /// As those measured that it is compared with: before the board's power has settled.
  [[nodiscard]] OperatorCost cost() const {
    return cost_alone({op, 1, {.clock = Clock::boost}}, gpu(), scenario.calibration);
  }
  [[nodiscard]] OperatorMemory memory() { return attention_memory(work(), op.precision, gpu()); }
  /// Milliseconds of both passes.
  [[nodiscard]] double training() {
    work().backward = false;
    const Seconds forward = cost().device;
    work().backward = true;
    return (forward + cost().device).value() * 1e3;
  }
};

double gigabytes(Bytes bytes) { return bytes.value() * 1e-9; }

}  // namespace

TEST_CASE("R14, FlashAttention-2: 12.2 ms are both passes and no causal mask, not a forward pass") {
  Run run("attention-flash-2");
  // 8 · 32 heads · 2048² pairs · 4 · 128 = 550 GFLOP: 1.76 ms at 312 TFLOP/s.
  run.work().backward = false;
  CHECK(roofline(run.op, run.gpu()).value() * 1e3 == Approx(1.76).epsilon(0.01));
  // A forward pass of 12.2 ms would be 45 TFLOP/s; measured forward passes on this chip reach 185.
  CHECK(run.cost().device.value() * 1e3 == Approx(2.84).epsilon(0.02));
  // Both passes, 3.5 times that work, at the 187 TFLOP/s measured for this length and width: 10.3 ms.
  CHECK(run.training() == Approx(3.5 * 0.550 / 187 * 1e3).epsilon(0.04));
  CHECK(run.training() < 12.2);
  CHECK(run.training() > 0.8 * 12.2);
  run.work().causal = true;
  CHECK(run.training() < 0.55 * 12.2);
  // Four projections of 16384 × 4096 × 4096 take at least 7 ms forward and 21 ms in both passes: they are not in it.
  const Matmul projections{.m = 16384, .n = 4 * 4096, .k = 4096};
  CHECK(3.0 * machine("dgx-a100-80gb").time(projections, Precision::fp16).value() * 1e3 > 21.0);
}

TEST_CASE("R14, standard attention: 45.3 ms are both passes with mask and dropout as kernels of their own") {
  Run run("attention-standard");
  CHECK(run.training() == Approx(45.3).epsilon(0.1));
  // Without them, 25.3 ms would be the measured 76 TFLOP/s.
  run.work().causal = run.work().dropout = false;
  CHECK(run.training() == Approx(3.5 * 0.550 / 76 * 1e3).epsilon(0.05));
}

TEST_CASE("R14, memory-efficient attention: 15.7 ms would be a third faster than measured kernels") {
  Run run("attention-memory-efficient");
  // xformers was measured at 95 TFLOP/s for this length and width, so 20.3 ms.
  CHECK(run.training() == Approx(3.5 * 0.550 / 95 * 1e3).epsilon(0.05));
  CHECK(run.training() / 15.7 > 1.25);
}

TEST_CASE("R14, memory: the difference between standard and flash is right, the rest is not attention's") {
  // A matrix of scores is 8 · 32 · 2048² · 2 B = 2.15 GB. Going back with dropout: P, its mask (half a matrix) and what
  // it leaves are kept, dP and dS are the workspace, so 4.5 matrices = 9.7 GB; without dropout 3, 6.4 GB. The text's
  // 12.5 - 4.3 = 8.2 GB lie between.
  Run standard("attention-standard"), flash("attention-flash-2"), efficient("attention-memory-efficient");
  CHECK(gigabytes(standard.memory().peak) == Approx(10.7).epsilon(0.01));
  const double dropped = gigabytes(standard.memory().peak - flash.memory().peak);
  standard.work().dropout = false;
  const double plain = gigabytes(standard.memory().peak - flash.memory().peak);
  CHECK(plain < 12.5 - 4.3);
  CHECK(dropped > 12.5 - 4.3);
  // Eight tensors of 134 MB (Q, K, V, O and gradients), dQ in fp32 and two numbers a query: 1.35 GB, not 4.3.
  CHECK(gigabytes(flash.memory().peak) == Approx(1.35).epsilon(0.01));
  // Nothing in the algorithm makes the memory-efficient kernels need 0.9 GB more.
  CHECK(efficient.memory().peak == flash.memory().peak);
}

TEST_CASE(
    "R14: flash begins to win far below 512 tokens; memory-efficient kernels later, one sequence at a time latest") {
  // The shortest multiple of 32 tokens from which both passes take less time than standard attention's.
  const auto begins = [](const char* node, AttentionKind kind, bool one_sequence, bool causal, std::int64_t kv_heads) {
    Run run("attention-crossover");
    const Gpu& gpu = machine(node).gpu;
    std::int64_t first = 32;
    for (std::int64_t length = 32; length <= 2048; length += 32) {
      Seconds times[2];
      for (const bool standard : {false, true}) {
        Attention work = run.work();
        work.batch = one_sequence ? 1 : std::max<std::int64_t>(16384 / length, 1);
        work.query_length = work.key_length = length;
        work.kv_heads = kv_heads;
        work.causal = causal;
        work.kind = standard ? AttentionKind::standard : kind;
        for (const bool backward : {false, true}) {
          work.backward = backward;
          times[standard] += operator_cost({"", work, Precision::fp16, 1}, gpu, run.scenario.calibration).device;
        }
      }
      if (!(times[0] < times[1])) first = length + 32;
    }
    return first;
  };
  for (const bool causal : {false, true}) {
    for (const std::int64_t kv_heads : {1, 8, 32}) {
      INFO("causal " << causal << " kv_heads " << kv_heads);
      CHECK(begins("dgx-a100-80gb", AttentionKind::flash_2, false, causal, kv_heads) <= 96);
      CHECK(begins("dgx-h100", AttentionKind::flash, false, causal, kv_heads) <= 96);
      const std::int64_t efficient = begins("dgx-a100-80gb", AttentionKind::memory_efficient, false, causal, kv_heads);
      CHECK(efficient >= 64);
      CHECK(efficient <= 256);
      const std::int64_t alone = begins("dgx-a100-80gb", AttentionKind::memory_efficient, true, causal, kv_heads);
      CHECK(alone >= 192);
      CHECK(alone <= 640);
    }
  }
}

TEST_CASE("R14: FlashAttention-3 in fp8 nears its authors' 1.2 PFLOP/s; FlashAttention-1 needs many blocks a head") {
  Run fp8("attention-flash-3-h100");
  CHECK(fp8.cost().flops / fp8.cost().device / FlopsPerSecond(1.2e15) == Approx(1.0).epsilon(0.15));
  Run starved("attention-flash-1-one-block-a-head");
  CHECK(starved.cost().flops / starved.cost().device < FlopsPerSecond(16.0 / 108.0 * 312e12));
}
