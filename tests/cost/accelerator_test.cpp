// R6: the scenarios about accelerators say what their descriptions promise.
#include "model/cost/operator_cost.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Scenario run(const std::string& name, const std::vector<std::string>& overrides = {}) {
  return load_scenario(FORETRAIN_SOURCE_DIR "/scenarios/runs/" + name + ".yaml", overrides);
}

OperatorCost cost_of(const Scenario& scenario, const Operator& op) {
  return operator_cost(op, scenario.cluster.node.gpu, scenario.calibration);
}

OperatorCost cost(const std::string& name, const std::vector<std::string>& overrides = {}) {
  const Scenario scenario = run(name, overrides);
  return cost_of(scenario, std::get<OperatorWorkload>(scenario.workload).op);
}

std::map<std::string, OperatorCost> task_costs(const std::string& name) {
  const Scenario scenario = run(name);
  std::map<std::string, OperatorCost> costs;
  for (const ScenarioTask& task : std::get<TasksWorkload>(scenario.workload).tasks) {
    costs.emplace(task.id, cost_of(scenario, std::get<Operator>(task.work)));
  }
  return costs;
}

}  // namespace

TEST_CASE("R6: each narrower format of A100 is about twice as fast, int4 no more than twice int8") {
  // 1.1 TFLOP at the datasheet's 19.5 (fp64), 19.5 (fp32), 156 (tf32), 312 (fp16), 624 (int8) and 1248 TFLOP/s (int4)
  // take at least 56, 56, 7.0, 3.5, 1.76 and 0.88 ms.
  const auto costs = task_costs("accelerator-number-formats");
  const std::pair<const char*, double> least[] = {{"fp64", 56.4}, {"fp32", 56.4},  {"tf32", 7.05},
                                                  {"fp16", 3.52}, {"int8", 1.762}, {"int4", 0.881}};
  for (const auto& [format, milliseconds] : least) {
    INFO(format);
    CHECK(costs.at(format).device.value() * 1e3 > milliseconds);
    CHECK(costs.at(format).device.value() * 1e3 < 1.7 * milliseconds);
    CHECK(costs.at(format).bound == Bound::compute);
  }
  CHECK(costs.at("fp16").device / costs.at("bf16").device == Approx(1.0));
  CHECK(costs.at("fp8 as fp16").device / costs.at("fp16").device == Approx(1.0).epsilon(0.06));
  CHECK(costs.at("int8").device / costs.at("int4").device < 2.1);
}

TEST_CASE("R6: H100 multiplies fp8 twice as fast as bf16, and int4 as int8") {
  const auto costs = task_costs("accelerator-number-formats-h100");
  CHECK(costs.at("bf16").device / costs.at("fp8").device > 1.7);
  CHECK(costs.at("bf16").device / costs.at("fp8").device < 2.3);
  CHECK(costs.at("int4 as int8").device / costs.at("int8").device == Approx(1.0).epsilon(0.06));
}

TEST_CASE("R6: the time of a product climbs in steps, one for each wave of tiles") {
  // From n = 1536 to 12,288 in steps of 64 the work grows eightfold; where tiles only fill up a wave the time stays
  // within 1 %, where they begin another it jumps by more than 2 %.
  int flat = 0, jumps = 0, values = 0;
  double before = 0.0;
  for (int n = 1536; n <= 12288; n += 64, ++values) {
    const double now =
        cost("accelerator-wave-quantisation", {"workload.operator.n=" + std::to_string(n)}).device.value();
    if (before > 0.0) {
      CHECK(now >= before * (1 - 1e-9));
      if (now < before * 1.01) ++flat;
      if (now > before * 1.02) ++jumps;
    }
    before = now;
  }
  CHECK(flat > values / 2);
  CHECK(jumps >= 8);
}

TEST_CASE("R6: dependent reads show the levels of A100's memory") {
  // 10⁶ reads: 33 cycles of 1410 MHz in the L1 (23 ns), 200 in the L2 (142 ns), 404 ns from device memory.
  const auto nanoseconds = [](const std::string& working_set) {
    return cost("accelerator-memory-latency", {"workload.operator.working_set=" + working_set}).device.value() * 1e3;
  };
  CHECK(nanoseconds("64 KiB") == Approx(23.4).epsilon(0.01));
  CHECK(nanoseconds("10 MiB") == Approx(141.8).epsilon(0.01));
  CHECK(nanoseconds("40 GB") == Approx(404.0).epsilon(0.01));
}

TEST_CASE("R6: the roofline of every operator: products bound by arithmetic, the rest by memory") {
  const Scenario scenario = run("accelerator-roofline");
  const auto costs = task_costs("accelerator-roofline");
  CHECK(costs.size() == 17);
  for (const ScenarioTask& task : std::get<TasksWorkload>(scenario.workload).tasks) {
    INFO(task.id);
    const OperatorCost& c = costs.at(task.id);
    CHECK(c.device.value() >= roofline(std::get<Operator>(task.work), scenario.cluster.node.gpu).value());
    // The grouped convolution's 100,352 tiles of 128 x 16 are 117 rounds of eight on each of 108 multiprocessors:
    // starts of 2.8 us take 0.33 ms, images pass in 0.23 ms, and 30 GFLOP, half of them padding, take 0.1 ms.
    const bool arithmetic = task.id == "matrix product" || task.id == "convolution 3x3" || task.id == "attention";
    CHECK((c.bound == Bound::compute) == arithmetic);
  }
  // The same update tensor by tensor passes (48 + 32 + 4 + 2) B for a parameter instead of (16 + 12 + 2) B.
  const double ratio = costs.at("AdamW tensor by tensor").device / costs.at("fused AdamW").device;
  CHECK(ratio > 86.0 / 30.0);
  CHECK(ratio < 2.0 * 86.0 / 30.0);  // and launches 1350 kernels
}
