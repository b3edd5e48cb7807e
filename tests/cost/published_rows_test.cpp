// The cost models against published measurements. Bounds are mean absolute errors; where rows were fitted, and which
// were not, is said beside each and in scenarios/calibrations/published.yaml.
#include "model/cost/operator_cost.hpp"
#include "model/scenario/load/cases.hpp"
#include "tests/catch.hpp"
#include "tests/cost/errors.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Errors;
using foretrain::test::machine;

namespace {

/// Mean absolute error of each group of a shipped table, of its rows of at least so many operations.
std::map<std::string, Errors> errors_of(const std::string& table, Flops least = Flops(0.0)) {
  std::map<std::string, Errors> groups;
  for (const Case& row : read_cases(FORETRAIN_SOURCE_DIR "/scenarios/cases/" + table)) {
    const Scenario scenario = scenario_of(row);
    const auto& work = std::get<OperatorWorkload>(scenario.workload);
    if (flops(work.op) < least) continue;
    groups[row.group].add(cost_alone(work, scenario.cluster.node.gpu, scenario.calibration).device,
                          Seconds(row.measured.at(0).value));
  }
  return groups;
}

}  // namespace

TEST_CASE("DeepBench products on V100 and T4: within 12 % above 50 us, within 25 % below") {
  const auto groups = errors_of("cases_gemm_v100_t4.csv");  // energies and the call were fitted to them
  REQUIRE(groups.size() == 8);
  for (const auto& [name, errors] : groups) {
    INFO(name);
    CHECK(errors.mean() < (name.find("short") == std::string::npos ? 0.12 : 0.25));
  }
}

TEST_CASE("Bursts of products on five GPUs: within 12 % in bf16, 15 % in fp8, 40 % in nvfp4; large ones within 9 %") {
  for (const auto& [name, errors] : errors_of("cases_gemm_aiconfigurator.csv")) {
    INFO(name);
    CHECK(errors.mean() < (name.ends_with("bf16") ? 0.12 : name.ends_with("fp8") ? 0.17 : 0.40));
  }
  for (const auto& [name, errors] : errors_of("cases_gemm_aiconfigurator.csv", Flops(100e9))) {
    INFO(name);
    if (name.ends_with("bf16")) CHECK(errors.mean() < 0.09);
  }
}

TEST_CASE("Megatron's products on A100 PCIe: within 6 %") {
  for (const auto& [name, errors] : errors_of("cases_gemm_a100.csv")) {
    INFO(name);
    CHECK(errors.mean() < 0.06);
  }
}

TEST_CASE(
    "The best products found by search are upper bounds that the model keeps below, by up to a fifth or a third") {
  // ml-engineering's table of maximum achievable matmul FLOPS: best iteration of the best shape. Of B200 these are
  // products of 0.1 ms, in which the board's power does not settle: whole steps sustain less, and the energy is theirs.
  // Of MI300X, MI325X and MI355X power does not allow the peaks of 1,307 and 2,517.
  struct Row {
    const char* node;
    Precision precision;
    Matmul shape;
    double tera_rate, least, most;
  };
  const Row rows[] = {
      {"dgx-a100-80gb", Precision::bf16, {.m = 1024, .n = 10240, .k = 5120}, 271.2, 0.8, 1.0},
      {"a100-pcie-x1", Precision::bf16, {.m = 2048, .n = 5120, .k = 6144}, 252.9, 0.8, 1.0},
      {"dgx-h100", Precision::bf16, {.m = 2048, .n = 2048, .k = 13312}, 794.5, 0.8, 1.0},
      {"dgx-h100", Precision::fp8, {.m = 1024, .n = 9216, .k = 14336}, 1402.6, 0.8, 1.0},
      {"dgx-b200", Precision::bf16, {.m = 1792, .n = 16128, .k = 3072}, 1745.0, 0.64, 1.0},
      {"dgx-b200", Precision::fp8, {.m = 15360, .n = 4096, .k = 3072}, 3432.5, 0.64, 1.0},
      {"mi300x-x8", Precision::bf16, {.m = 10240, .n = 15360, .k = 8192}, 668.4, 0.8, 0.95},
      {"mi325x-x8", Precision::bf16, {.m = 13312, .n = 10240, .k = 8192}, 784.9, 0.8, 0.95},
      {"mi355x-x8", Precision::bf16, {.m = 12288, .n = 8192, .k = 8192}, 1565.0, 0.8, 0.95},
  };
  for (const Row& row : rows) {
    const OperatorCost cost = machine(row.node).cost(row.shape, row.precision);
    const double share = cost.flops / cost.device / FlopsPerSecond(row.tera_rate * 1e12);
    INFO(row.node << " " << name(row.precision));
    CHECK(share > row.least);
    CHECK(share < row.most);
  }
}
