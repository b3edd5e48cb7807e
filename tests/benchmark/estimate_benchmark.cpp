// How fast estimates are: `build/tests/benchmark_estimate`. Not a test: it asserts nothing. One operator should take
// less than a microsecond, the step of a large model less than 50 ms.

#include <benchmark/benchmark.h>

#include "model/cost/operator_cost.hpp"
#include "model/estimate.hpp"
#include "model/prepared.hpp"
#include "model/scenario/load.hpp"

using namespace foretrain;

namespace {

const Scenario& a100() {
  static const Scenario scenario = load_scenario_text(
      "cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: copy, size: 1 MB } }\n", "benchmark");
  return scenario;
}

void price(benchmark::State& state, const OperatorWork& work, Precision precision) {
  const Operator op{"", work, precision, 1};
  const Scenario& scenario = a100();
  for (auto _ : state) {
    benchmark::DoNotOptimize(operator_cost(op, scenario.cluster.node.gpu, scenario.calibration));
  }
}

void step(benchmark::State& state, const char* name) {
  const Scenario scenario = load_scenario(name);
  for (auto _ : state) benchmark::DoNotOptimize(estimate(PreparedScenario(scenario)));
}

const Convolution convolution{.n = 128, .c = 64, .h = 56, .w = 56, .k = 64, .r = 3, .s = 3, .p = 56, .q = 56};
const Attention attention{
    .batch = 8, .heads = 32, .kv_heads = 32, .query_length = 2048, .key_length = 2048, .head_dim = 128};
const Streaming streaming{StreamingKind::elementwise, Bytes(1e8), Bytes(1e8), Flops(1e8), false};
const MemoryAccess reads{AccessPattern::strided, 1e9, Bytes(4), Bytes(128), Bytes(1e9)};

BENCHMARK_CAPTURE(price, large_product, Matmul{.m = 8192, .n = 8192, .k = 8192}, Precision::bf16);
BENCHMARK_CAPTURE(price, skinny_product, Matmul{.m = 16, .n = 8192, .k = 8192}, Precision::bf16);
BENCHMARK_CAPTURE(price, small_product, Matmul{.m = 100, .n = 100, .k = 4096}, Precision::fp32);
BENCHMARK_CAPTURE(price, convolution_fp16, convolution, Precision::fp16);
BENCHMARK_CAPTURE(price, convolution_fp32, convolution, Precision::fp32);
BENCHMARK_CAPTURE(price, flash_attention, attention, Precision::bf16);
BENCHMARK_CAPTURE(price, streaming, streaming, Precision::bf16);
BENCHMARK_CAPTURE(price, strided_reads, reads, Precision::fp32);
BENCHMARK_CAPTURE(step, gpt3_175b_on_1024_gpus, "gpt3-175b-1024-a100")->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
