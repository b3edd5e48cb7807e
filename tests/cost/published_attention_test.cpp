// The cost model of attention against published measurements. Bounds are mean absolute errors. Four constants were
// fitted to all rows of FlashAttention-2, cuDNN and engines' attention together; what else was is said beside each.
#include "model/scenario/load/cases.hpp"
#include "tests/catch.hpp"
#include "tests/cost/errors.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Errors;
using foretrain::test::machine;

namespace {

/// By what `part_of` says of an operator, within the groups of a shipped table.
template <typename Part>
std::map<std::string, Errors> errors_of(const std::string& table, const Part& part_of) {
  std::map<std::string, Errors> groups;
  for (const Case& row : read_cases(FORETRAIN_SOURCE_DIR "/scenarios/cases/" + table + ".csv")) {
    const Scenario scenario = scenario_of(row);
    const auto& workload = std::get<OperatorWorkload>(scenario.workload);
    groups[row.group + part_of(std::get<Attention>(workload.op.work))].add(
        cost_alone(workload, scenario.cluster.node.gpu, scenario.calibration).device,
        Seconds(row.measured.at(0).value));
  }
  return groups;
}

std::map<std::string, Errors> table_errors() {
  return errors_of("cases_attention_fa2",
                   [](const Attention& work) { return work.backward ? " backward" : " forward"; });
}

/// TFLOP/s of forward and backward together, 16,384 tokens of width 2048 in sequences of 512, 1024, … 16,384; 0 where
/// nothing is printed. A causal mask halves the counted work; the backward pass counts 2.5 times the forward one.
/// Source: Dao-AILab/flash-attention, assets/flash2_a100_fwd_bwd_benchmark.png and flash2_h100_fwd_bwd_benchmark.png.
struct AttentionSeries {
  const char* node;
  AttentionKind kind;
  bool causal;
  std::int64_t head_dim;
  std::array<double, 6> tera_rate;
};
constexpr auto flash_1 = AttentionKind::flash_1;
constexpr auto flash_2 = AttentionKind::flash_2;
constexpr auto efficient = AttentionKind::memory_efficient;
constexpr auto standard = AttentionKind::standard;
const AttentionSeries attention_series[] = {
    {"dgx-a100-80gb", flash_2, false, 64, {132, 153, 162, 171, 175, 176}},
    {"dgx-a100-80gb", flash_2, false, 128, {0, 173, 187, 196, 201, 203}},
    {"dgx-a100-80gb", flash_2, true, 64, {88, 119, 140, 156, 165, 171}},
    {"dgx-a100-80gb", flash_2, true, 128, {99, 133, 155, 173, 182, 189}},
    {"dgx-h100", flash_2, false, 64, {215, 254, 274, 288, 294, 296}},
    {"dgx-h100", flash_2, false, 128, {248, 294, 320, 326, 335, 338}},
    {"dgx-h100", flash_2, true, 64, {141, 192, 232, 257, 273, 284}},
    {"dgx-h100", flash_2, true, 128, {163, 221, 265, 294, 308, 328}},
    {"dgx-a100-80gb", flash_1, false, 64, {91, 92, 104, 108, 110, 110}},
    {"dgx-a100-80gb", flash_1, false, 128, {76, 72, 76, 80, 82, 83}},
    {"dgx-a100-80gb", flash_1, true, 64, {58, 70, 77, 87, 92, 97}},
    {"dgx-a100-80gb", flash_1, true, 128, {55, 62, 69, 76, 80, 83}},
    {"dgx-h100", flash_1, false, 64, {157, 159, 161, 161, 166, 168}},
    {"dgx-h100", flash_1, false, 128, {127, 127, 128, 131, 137, 139}},
    {"dgx-h100", flash_1, true, 64, {104, 123, 136, 138, 149, 156}},
    {"dgx-h100", flash_1, true, 128, {98, 109, 108, 126, 135, 137}},
    {"dgx-a100-80gb", efficient, false, 64, {68, 73, 76, 77, 75, 75}},
    {"dgx-a100-80gb", efficient, false, 128, {83, 91, 95, 96, 97, 98}},
    {"dgx-a100-80gb", efficient, true, 64, {51, 60, 66, 68, 69, 67}},
    {"dgx-a100-80gb", efficient, true, 128, {58, 72, 82, 87, 91, 92}},
    {"dgx-a100-80gb", standard, false, 64, {36, 40, 43, 45, 46, 0}},
    {"dgx-a100-80gb", standard, false, 128, {53, 67, 76, 79, 86, 0}},
    {"dgx-a100-80gb", standard, true, 64, {15, 16, 17, 18, 18, 0}},
    {"dgx-a100-80gb", standard, true, 128, {23, 28, 32, 32, 34, 0}},
    {"dgx-h100", standard, false, 64, {62, 72, 81, 86, 87, 0}},
    {"dgx-h100", standard, false, 128, {93, 120, 145, 160, 167, 0}},
    {"dgx-h100", standard, true, 64, {26, 29, 31, 32, 32, 0}},
    {"dgx-h100", standard, true, 128, {40, 50, 57, 61, 63, 0}},
};

Errors figure_errors(const std::string& node, AttentionKind kind, bool causal) {
  Errors errors;
  for (const AttentionSeries& series : attention_series) {
    if (series.node != node || series.kind != kind || series.causal != causal) continue;
    for (std::size_t i = 0; i < series.tera_rate.size(); ++i) {
      if (series.tera_rate[i] == 0.0) continue;
      const std::int64_t length = 512LL << i;
      Attention work =
          test::attention(series.kind, 16384 / length, 2048 / series.head_dim, length, series.head_dim, series.causal);
      const double counted = static_cast<double>(work.batch * work.heads * work.query_length * work.key_length) *
                             (series.causal ? 0.5 : 1) * static_cast<double>(series.head_dim);
      const Seconds measured(3.5 * 4.0 * counted / (series.tera_rate[i] * 1e12));
      const Seconds forward = machine(node).burst(work, Precision::fp16).device;
      work.backward = true;
      errors.add(forward + machine(node).burst(work, Precision::fp16).device, measured);
    }
  }
  return errors;
}

}  // namespace

TEST_CASE("FlashAttention-2 on A100: forward and backward within 3.5 %, alone on the PCIe card within 8 % and 4 %") {
  CHECK(figure_errors("dgx-a100-80gb", flash_2, false).count == 11);
  CHECK(figure_errors("dgx-a100-80gb", flash_2, false).mean() < 0.035);
  CHECK(figure_errors("dgx-a100-80gb", flash_2, true).mean() < 0.02);
  auto groups = table_errors();
  CHECK(groups.at("attention-flash-a100-pcie forward").mean() < 0.08);
  CHECK(groups.at("attention-flash-a100-pcie backward").mean() < 0.04);
}

TEST_CASE("FlashAttention-2 on H100: forward within 8 %, forward and backward within 8 %") {
  // The rate of mma.sync on Hopper is fitted to the forward rows.
  auto groups = table_errors();
  CHECK(groups.at("attention-flash-h100 forward").count == 36);
  CHECK(groups.at("attention-flash-h100 forward").mean() < 0.08);
  for (const bool causal : {false, true}) {
    CHECK(figure_errors("dgx-h100", flash_2, causal).count == 12);
    CHECK(figure_errors("dgx-h100", flash_2, causal).mean() < 0.08);
  }
}

TEST_CASE("FlashAttention-1, no row fitted: A100 within 9 %, H100 within 12 %") {
  // FlashAttention-2's products, and its own partial outputs through memory.
  for (const bool causal : {false, true}) {
    CHECK(figure_errors("dgx-a100-80gb", flash_1, causal).count == 12);
    CHECK(figure_errors("dgx-a100-80gb", flash_1, causal).mean() < 0.09);
    CHECK(figure_errors("dgx-h100", flash_1, causal).mean() < 0.12);
  }
}

TEST_CASE("cuDNN's attention on H100, forward: within 12 %") {
  auto groups = table_errors();
  CHECK(groups.at("attention-cudnn-h100 forward").count == 35);
  CHECK(groups.at("attention-cudnn-h100 forward").mean() < 0.12);
}

TEST_CASE("Engines' attention on four GPUs: within 9 % above 10 GFLOP, and within 15 % below") {
  const auto groups = errors_of("cases_attention_aiconfigurator", [](const Attention& work) {
    return work.operations() > Flops(10e9) ? " long" : " short";
  });
  CHECK(groups.size() == 10);
  int rows = 0;
  for (const auto& [group, errors] : groups) {
    INFO(group);
    CHECK(errors.mean() < (group.ends_with(" long") ? 0.09 : 0.15));
    rows += errors.count;
  }
  CHECK(rows == 800);
}

TEST_CASE("FlashAttention-3 as its authors sum it up") {
  // arXiv 2407.08608: 661 TFLOP/s, head_dim 128, and close to 1.2 PFLOP/s in fp8, neither fitted. Engines that call it
  // reach less (attention-h100-fa3).
  const auto tera_rate = [](std::int64_t head_dim, Precision precision) {
    const Attention work = test::attention(AttentionKind::flash_3, 4, 2048 / head_dim, 16384, head_dim);
    const OperatorCost cost = machine("dgx-h100").burst(work, precision);
    return cost.flops / cost.device / FlopsPerSecond(1e12);
  };
  // The board's power settles in these 117 ms; the energy of an operation is that of products, and attention's clocks
  // fall by as much as theirs: 15 % too slow.
  CHECK(tera_rate(128, Precision::fp16) == Approx(661).epsilon(0.16));
  CHECK(tera_rate(256, Precision::fp8) == Approx(1200).epsilon(0.15));
}

TEST_CASE("The memory-efficient kernels on A100, one factor fitted: within 9 %") {
  CHECK(figure_errors("dgx-a100-80gb", efficient, false).mean() < 0.09);
  CHECK(figure_errors("dgx-a100-80gb", efficient, true).mean() < 0.10);
}

TEST_CASE("Standard attention: A100 fitted within 8 %, H100 predicted within 12 %") {
  for (const bool causal : {false, true}) {
    CHECK(figure_errors("dgx-a100-80gb", standard, causal).count == 10);
    CHECK(figure_errors("dgx-a100-80gb", standard, causal).mean() < 0.08);
    CHECK(figure_errors("dgx-h100", standard, causal).mean() < 0.12);
  }
}
