// 90 % intervals by kind of measurement: the published value that a result
// takes.
#include "model/job/calibrated_uncertainty.hpp"
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

struct Predicted {
  explicit Predicted(const std::string& text)
      : scenario(load_scenario_text(text, "uncertainty.yaml")), result(estimate(scenario)) {}
  Scenario scenario;
  Result result;

  [[nodiscard]] const UncertaintyConstants& published() const { return scenario.calibration.uncertainty; }
  [[nodiscard]] double slower() const { return result.uncertainty_high / result.time() - 1.0; }
  [[nodiscard]] double faster() const { return result.time() / result.uncertainty_low - 1.0; }
  /// The kind of measurements that the range depends on, where it is one alone.
  [[nodiscard]] std::string only_cause() const {
    REQUIRE(result.uncertainty_causes.size() == 1);
    CHECK(result.uncertainty_causes[0].share == Approx(1.0));
    return result.uncertainty_causes[0].constant;
  }
};

Predicted one_gpu(const std::string& node, const std::string& training, const std::string& plan = "{}") {
  return Predicted("cluster: { node: " + node + ", gpus_per_node: 1 }\n" +
                   "workload: { train: { global_batch: 8, micro_batch: 8, " + training + " } }\nplan: " + plan + "\n");
}

constexpr const char* gpt = "model: { family: gpt, layers: 8, hidden: 2048, heads: 16, vocabulary: 51200, sequence: ";

Predicted gpt_on(const std::string& node, const std::string& precision, const std::string& plan = "{}",
                 int sequence = 1024) {
  return one_gpu(node, gpt + std::to_string(sequence) + " }, precision: " + precision, plan);
}

Predicted collective(int nodes, const std::string& size) {
  return Predicted("cluster: { node: dgx-a100-80gb, nodes: " + std::to_string(nodes) +
                   " }\nworkload: { collective: { operation: all_reduce, size: " + size + " } }\n");
}

}  // namespace

TEST_CASE("a step on one GPU is as uncertain as steps of its kind were, and less so on the fast side") {
  const std::string tuned = "{ trainer: nemo, zero: 0 }";
  const auto cause = [](const Predicted& step, double slower) {
    CHECK(step.slower() == Approx(slower));
    return step.only_cause();
  };
  const Predicted bf16 = gpt_on("dgx-a100-80gb", "bf16", tuned);
  const UncertaintyConstants& published = bf16.published();
  CHECK(cause(bf16, published.recipe) == "uncertainty.recipe");
  CHECK(bf16.faster() == Approx(published.faster));
  CHECK(bf16.result.warnings.empty());
  // Neither the format nor Blackwell makes another kind: rows of both lie within the range of all.
  CHECK(cause(gpt_on("dgx-h100", "fp8", tuned), published.recipe) == "uncertainty.recipe");
  CHECK(cause(gpt_on("dgx-b200", "bf16", tuned), published.recipe) == "uncertainty.recipe");
  // Kernels one by one, gradients that are waited for, and sequences whose attention is most of the work.
  const std::string waits = "{ trainer: nemo, zero: 0, sync: { overlap: false } }";
  CHECK(cause(gpt_on("dgx-a100-80gb", "bf16, kernels: plain", tuned), published.plain) == "uncertainty.plain");
  CHECK(cause(gpt_on("dgx-a100-80gb", "bf16", waits), published.plain) == "uncertainty.plain");
  CHECK(cause(gpt_on("dgx-h100", "bf16", tuned, 131072), published.plain) == "uncertainty.plain");
  const Predicted tensor_ranks(
      "cluster: { node: dgx-a100-80gb, gpus_per_node: 2 }\nplan: { trainer: nemo, tensor: 2, tensor_overlap: false }\n"
      "workload: { train: { global_batch: 8, micro_batch: 8, precision: bf16, " +
      std::string(gpt) + "1024 } } }\n");
  CHECK(tensor_ranks.result.uncertainty_causes.at(0).constant == "uncertainty.plain");
  const Predicted network = one_gpu("dgx1-v100-16gb", "model: resnet-50, precision: fp32", "{ trainer: tensorflow }");
  CHECK(cause(network, published.network) == "uncertainty.network");
  CHECK(cause(one_gpu("host-training", "model: lenet, precision: fp32"), published.processor) ==
        "uncertainty.processor");
}

TEST_CASE("a trainer that nobody names makes the slow end later, never the fast one sooner, and the answer says it") {
  const Predicted unnamed = gpt_on("dgx-a100-80gb", "bf16");
  const UncertaintyConstants& published = unnamed.published();
  REQUIRE(published.unnamed > published.recipe);
  CHECK(unnamed.only_cause() == "uncertainty.unnamed");
  CHECK(unnamed.result.uncertainty_causes[0].what == "unspecified framework");
  CHECK(unnamed.slower() == Approx(published.unnamed));
  CHECK(unnamed.faster() == Approx(published.faster));
  // A user who names the assumption has adopted it.
  CHECK(gpt_on("dgx-a100-80gb", "bf16", "{ trainer: well-tuned }").slower() == Approx(published.recipe));
}

TEST_CASE("a kind of GPU on which no step was measured has a range half as wide again, and says so") {
  const Predicted unseen = gpt_on("t4-x1", "fp16");
  CHECK(unseen.slower() == Approx(1.5 * unseen.published().unnamed));
  CHECK(unseen.faster() == Approx(1.5 * unseen.published().faster));
  CHECK(std::ranges::any_of(unseen.result.warnings, [](const std::string& warning) {
    return warning.find("no training step on turing GPUs") != std::string::npos;
  }));
}

TEST_CASE("what a step waits for communication is as uncertain as communication is, by the share that it waits") {
  for (const std::string sync : {"algorithm: ring", "algorithm: parameter_server, servers: 2, placement: colocated"}) {
    CAPTURE(sync);
    const Predicted step(
        "cluster: { node: p3.16xlarge, nodes: 2, gpus_per_node: 1, network: { nic_bandwidth: 10 Gbit/s } }\n"
        "workload: { train: { model: vgg-16, micro_batch: 8, precision: fp32 } }\n"
        "plan: { trainer: tensorflow, sync: { " +
        sync + " } }\n");
    const UncertaintyConstants& published = step.published();
    const double waits = step.result.train()->breakdown.exposed_communication / step.result.time();
    REQUIRE(waits > 0.1);
    const double other = sync == "algorithm: ring" ? published.between_nodes : published.servers;
    CHECK(step.slower() == Approx(published.network + waits * (other - published.network)));
    CHECK(step.faster() == Approx(published.faster));
    const std::vector<UncertaintyCause>& causes = step.result.uncertainty_causes;
    REQUIRE(causes.size() == 2);
    CHECK(causes[0].share + causes[1].share == Approx(1.0));
    const double width = step.slower() + step.faster();
    CHECK(causes[1].share == Approx(waits * (other + published.faster) / width));
  }
}

TEST_CASE("collectives: small ones differ most from machine to machine; hosts without a GPU are none of Kepler's") {
  const Predicted large = collective(1, "1 GB");
  const UncertaintyConstants& published = large.published();
  CHECK(large.slower() == Approx(published.collective));
  CHECK(collective(1, "100 KB").slower() == Approx(published.small_collective));
  CHECK(collective(2, "1 GB").slower() == Approx(published.between_nodes));
  const Predicted small = collective(2, "4 MB");
  CHECK(small.slower() == Approx(published.small_between_nodes));
  CHECK(small.faster() == Approx(published.small_between_nodes));
  const Predicted hosts(
      "cluster: { node: host-veth, nodes: 2 }\nworkload: { collective: { operation: all_reduce, size: 1 MB } }\n");
  CHECK(hosts.only_cause() == "uncertainty.processor");
  // Compute and waits of hosts are of one kind, which is named once.
  const Predicted ring(
      "cluster: { node: host-training, nodes: 2 }\nworkload: { train: { model: lenet, micro_batch: 8, precision: fp32 "
      "} }\n");
  CHECK(ring.only_cause() == "uncertainty.processor");
}

TEST_CASE("a kernel by itself: launch and tail of a small one, and the format of four bits, are worse known") {
  const auto product = [](const char* node, int size, const char* precision = "bf16") {
    return Predicted(
        fmt::format("cluster: {{ node: {} }}\nworkload: {{ operator: {{ kind: matmul, m: {}, n: {}, k: {}, "
                    "precision: {} }} }}\n",
                    node, size, size, size, precision));
  };
  const Predicted large = product("dgx-a100-80gb", 8192);
  REQUIRE(large.result.time() > Seconds(1e-3));
  CHECK(large.slower() == Approx(large.published().kernel));
  CHECK(large.faster() == Approx(large.published().kernel));
  CHECK(product("dgx-a100-80gb", 1024).slower() == Approx(large.published().small_kernel));
  const Predicted four_bit = product("dgx-b200", 8192, "nvfp4");
  CHECK(four_bit.slower() == Approx(large.published().four_bit));
  CHECK(four_bit.faster() == Approx(large.published().four_bit));
  // No product of CDNA was measured: large ones hang on an energy that is then guessed, small ones on it less.
  CHECK(product("mi300x-x8", 16384).slower() == Approx(3.0 * large.published().kernel));
  CHECK(product("mi300x-x8", 512).slower() == Approx(1.5 * large.published().small_kernel));
}

TEST_CASE("a finished training has one interval, the calibration's own where it was fitted, and a bill as wide") {
  Scenario scenario = load_scenario_text(
      "cluster: { node: dgx-a100-80gb, gpus_per_node: 1, energy: { grid: 100 g/kWh, pue: 1.25, machine: 1 kW } }\n"
      "workload: { train: { global_batch: 8, micro_batch: 8, precision: bf16, samples: 1 billion tokens, " +
          std::string(gpt) + "1024 } } }\n",
      "finished.yaml");
  const auto stretch = [](const Result& result) { return result.uncertainty_high / result.time(); };
  const auto bill_stretch = [](const Result& result) {
    return result.train()->bill->longest / *result.train()->time_to_train;
  };
  const Result numbers = estimate(scenario);
  CHECK(bill_stretch(numbers) == Approx(stretch(numbers)));
  CHECK(numbers.provenance.empty());
  CHECK(numbers.settings.empty());
  // Products that were measured to lie 30 % off, and no constant that is uncertain: nine of ten within exp(1.64 · 0.3).
  scenario.calibration.fitted = FittedUncertainty{{}, {}, {{"matmul", 0.3}}};
  scenario.calibration.step.kernel_stretch = 1.0;
  Result whole = estimate(scenario);
  finish(scenario, Detail::whole, whole);
  CHECK(stretch(whole) == Approx(std::exp(1.6449 * 0.3)));
  CHECK(bill_stretch(whole) == Approx(stretch(whole)));
  CHECK_FALSE(whole.provenance.empty());
  CHECK_FALSE(whole.settings.empty());
  CHECK(whole.train()->trainer == scenario.trainer);
}

TEST_CASE("a step's range is that of measured steps, else of the families that its kernels are of") {
  // A GPT's products take most of its time, elementwise kernels and attention the rest. Walks through memory, which no
  // step does, were measured to lie a factor of e off: that says nothing of a step.
  Scenario scenario = load_scenario_text(
      "cluster: { node: dgx-a100-80gb, gpus_per_node: 1 }\nworkload: { train: { global_batch: 8, micro_batch: 8, "
      "precision: bf16, " +
          std::string(gpt) + "1024 } } }\n",
      "step.yaml");
  scenario.calibration.step.kernel_stretch = 1.0;
  const auto spread = [&](std::map<std::string, double> families) {
    scenario.calibration.fitted = FittedUncertainty{{}, {}, std::move(families)};
    Result result = estimate(scenario);
    REQUIRE(set_calibrated_uncertainty(scenario, result));
    return std::log(result.uncertainty_high / result.time()) / 1.6449;
  };
  const std::map<std::string, double> kernels = {{"matmul", 0.04}, {"streaming", 0.08}, {"attention", 0.06}};
  std::map<std::string, double> walks = kernels;
  walks["memory_access"] = 1.0;
  const double mean = spread(kernels);
  CHECK(mean > 0.04);
  CHECK(mean < 0.08);
  CHECK(spread(walks) == Approx(mean));
  // Measured steps determine it.
  walks["step"] = 0.03;
  CHECK(spread(walks) == Approx(0.03));
}

TEST_CASE("a fitted range is that of the answer's response to each constant, with what the fit says of both together") {
  Scenario scenario = load_scenario_text(
      "cluster: { node: dgx-a100-80gb, gpus_per_node: 1 }\n"
      "workload: { operator: { kind: softmax, rows: 40000, columns: 1024, precision: bf16 } }\n",
      "fitted.yaml");
  const std::vector<std::string> names = {"streaming.bandwidth_efficiency", "streaming.kernel_us"};
  const double errors[] = {0.02, 1.5}, spread = 0.05, correlation = -0.6;
  const auto log_time_with = [&](std::size_t i, double by) {
    Scenario other = scenario;
    const ConstantRow* row = find_constant(names[i]);
    REQUIRE(row != nullptr);
    row->field(other.calibration) += by;
    other.calibration.constants.clear();
    other.cluster.node.constants.clear();
    return std::log(estimate(other).time().value());
  };
  const auto standard_deviation = [&] {
    Result result = estimate(scenario);
    REQUIRE(set_calibrated_uncertainty(scenario, result));
    return std::log(result.uncertainty_high / result.time()) / 1.6449;
  };
  const double covariance = correlation * errors[0] * errors[1];
  scenario.calibration.fitted = FittedUncertainty{
      names, {{errors[0] * errors[0], covariance}, {covariance, errors[1] * errors[1]}}, {{"streaming", spread}}};
  const auto expected = [&](double first, double second) {
    return std::sqrt(first * first + second * second + 2.0 * correlation * first * second + spread * spread);
  };
  const double here = log_time_with(0, 0.0);
  const double first = log_time_with(0, errors[0]) - here, second = log_time_with(1, errors[1]) - here;
  REQUIRE(first < 0.0);
  REQUIRE(second > 0.0);
  CHECK(standard_deviation() == Approx(expected(first, second)).epsilon(1e-6));

  // An efficiency that one standard error would lift above its greatest value is lowered instead, as far as there is
  // room, and its response is of so much.
  const ConstantRow* efficiency = find_constant(names[0]);
  double& value = efficiency->field(scenario.calibration);
  value = efficiency->maximum;
  const double at_most = log_time_with(0, 0.0);
  CHECK(standard_deviation() ==
        Approx(expected(at_most - log_time_with(0, -errors[0]), log_time_with(1, errors[1]) - at_most)).epsilon(1e-6));
}
