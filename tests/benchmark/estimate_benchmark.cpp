// How fast estimates are: `build/tests/benchmark_estimate`. Not a test: it asserts nothing. One operator should take
// less than a microsecond, the step of a large model less than 50 ms.

#include <benchmark/benchmark.h>

#include <array>

#include "model/cost/measured_matmul.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"

using namespace foretrain;

namespace {

const Scenario& a100() {
  static const Scenario scenario = load_scenario_text(
      "cluster: { node: dgx-a100-80gb }\nworkload: { operator: { kind: copy, size: 1 MB } }\n", "benchmark");
  return scenario;
}

void price_with(benchmark::State& state, const Calibration& calibration, const OperatorWork& work,
                Precision precision) {
  const Operator op{"", work, precision, 1};
  const Gpu& gpu = a100().cluster.node.gpu;
  for (auto _ : state) benchmark::DoNotOptimize(operator_cost(op, gpu, calibration));
}

void price(benchmark::State& state, const OperatorWork& work, Precision precision) {
  price_with(state, a100().calibration, work, precision);
}

/// Beside a table of 200 measured products, as large as the published ones.
void price_measured(benchmark::State& state, const OperatorWork& work, Precision precision) {
  Calibration calibration = a100().calibration;
  const Gpu& gpu = a100().cluster.node.gpu;
  for (std::int64_t i = 0; i < 200; ++i) {
    MeasuredMatmul row;
    row.gpu = gpu.name;
    row.precision = precision;
    row.m = 64 << i % 8;
    row.n = 64 << i / 8 % 5;
    row.k = 1024 << i / 40;
    row.time = Seconds(1e-3);
    calibration.measured_matmuls.push_back(row);
  }
  adopt_measured_matmuls(calibration, gpu);
  price_with(state, calibration, work, precision);
}

void step(benchmark::State& state, const char* name) {
  const Scenario scenario = load_scenario(name);
  for (auto _ : state) benchmark::DoNotOptimize(estimate(scenario));
}

Convolution convolution(std::int64_t channels, std::int64_t filter, std::int64_t groups, ConvolutionPass pass) {
  return {.n = 128,
          .c = channels,
          .h = 56,
          .w = 56,
          .k = channels,
          .r = filter,
          .s = filter,
          .p = 56,
          .q = 56,
          .stride = 1,
          .groups = groups,
          .pass = pass};
}

Attention attention(AttentionKind kind, bool backward, std::int64_t window = 0) {
  return {.batch = 8,
          .heads = 32,
          .kv_heads = 32,
          .query_length = 2048,
          .key_length = 2048,
          .head_dim = 128,
          .causal = true,
          .kind = kind,
          .backward = backward,
          .window = window};
}

Attention masked() {
  Attention work = attention(AttentionKind::standard, false);
  work.biased = true;
  work.dropout = true;
  return work;
}

Attention packed(AttentionKind kind) {
  Attention work = attention(kind, true);
  work.packing = pack(std::array<std::int64_t, 6>{1000, 500, 400, 100, 40, 8}, work.causal, work.window);
  return work;
}

const Streaming streaming{StreamingKind::elementwise, Bytes(1e8), Bytes(1e8), Flops(1e8), false};
MemoryAccess reads(AccessPattern pattern) { return {pattern, 1e9, Bytes(4), Bytes(128), Bytes(1e9)}; }

using enum AttentionKind;
using enum ConvolutionPass;

BENCHMARK_CAPTURE(price, large_product, Matmul{.m = 8192, .n = 8192, .k = 8192}, Precision::bf16);
BENCHMARK_CAPTURE(price, skinny_product, Matmul{.m = 16, .n = 8192, .k = 8192}, Precision::bf16);
BENCHMARK_CAPTURE(price, small_product, Matmul{.m = 100, .n = 100, .k = 4096}, Precision::fp32);
BENCHMARK_CAPTURE(price, odd_product, Matmul{.m = 8191, .n = 511, .k = 4095}, Precision::fp16);
BENCHMARK_CAPTURE(price, matrix_times_vector, Matmul{.m = 8192, .n = 1, .k = 8192}, Precision::bf16);
BENCHMARK_CAPTURE(price, batched_product, Matmul{.batch = 256, .m = 512, .n = 64, .k = 512}, Precision::bf16);
BENCHMARK_CAPTURE(price_measured, measured_product, Matmul{.m = 1000, .n = 500, .k = 4000}, Precision::bf16);
BENCHMARK_CAPTURE(price, convolution_fp16, convolution(64, 3, 1, forward), Precision::fp16);
BENCHMARK_CAPTURE(price, convolution_1x1, convolution(256, 1, 1, forward), Precision::fp32);
BENCHMARK_CAPTURE(price, convolution_3x3, convolution(64, 3, 1, forward), Precision::fp32);
BENCHMARK_CAPTURE(price, convolution_data_gradient, convolution(64, 3, 1, data_gradient), Precision::fp32);
BENCHMARK_CAPTURE(price, convolution_weight_gradient, convolution(64, 3, 1, weight_gradient), Precision::fp32);
BENCHMARK_CAPTURE(price, convolution_5x5, convolution(64, 5, 1, weight_gradient), Precision::fp32);
BENCHMARK_CAPTURE(price, convolution_grouped, convolution(256, 3, 8, forward), Precision::fp16);
BENCHMARK_CAPTURE(price, convolution_depthwise, convolution(256, 3, 256, forward), Precision::fp32);
BENCHMARK_CAPTURE(price, flash_attention, attention(flash, false), Precision::bf16);
BENCHMARK_CAPTURE(price, flash_attention_backward, attention(flash, true), Precision::bf16);
BENCHMARK_CAPTURE(price, flash_attention_window, attention(flash, false, 256), Precision::bf16);
BENCHMARK_CAPTURE(price, flash_attention_packed, packed(flash), Precision::bf16);
BENCHMARK_CAPTURE(price, flash_1_attention, attention(flash_1, true), Precision::bf16);
BENCHMARK_CAPTURE(price, memory_efficient_attention, attention(memory_efficient, true), Precision::fp32);
BENCHMARK_CAPTURE(price, standard_attention, attention(standard, false), Precision::bf16);
BENCHMARK_CAPTURE(price, standard_attention_backward, attention(standard, true), Precision::bf16);
BENCHMARK_CAPTURE(price, standard_attention_masked, masked(), Precision::fp32);
BENCHMARK_CAPTURE(price, standard_attention_packed, packed(standard), Precision::bf16);
BENCHMARK_CAPTURE(price, streaming, streaming, Precision::bf16);
BENCHMARK_CAPTURE(price, strided_reads, reads(AccessPattern::strided), Precision::fp32);
BENCHMARK_CAPTURE(price, dependent_reads, reads(AccessPattern::dependent), Precision::fp32);
BENCHMARK_CAPTURE(step, gpt3_175b_on_1024_gpus, "gpt3-175b-1024-a100")->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
