// How far nine of ten measured cases of a kind lie from their predictions: which of the published figures a result
// takes.
#include <algorithm>
#include <cmath>
#include <string>

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
  /// The interval's share, which must be the same both ways.
  [[nodiscard]] double share() const {
    const double above = result.uncertainty_high / result.time() - 1.0;
    CHECK(result.time() / result.uncertainty_low - 1.0 == Approx(above));
    return above;
  }
};

Predicted one_gpu(const std::string& node, const std::string& training) {
  return Predicted("cluster: { node: " + node + ", gpus_per_node: 1 }\n" +
                   "workload: { train: { global_batch: 8, micro_batch: 8, " + training + " } }\n");
}

constexpr const char* gpt = "model: { family: gpt, layers: 8, hidden: 2048, heads: 16, vocabulary: 51200, sequence: ";

Predicted gpt_on(const std::string& node, const std::string& precision, const std::string& more = "",
                 int sequence = 1024) {
  return one_gpu(node, gpt + std::to_string(sequence) + " }, precision: " + precision + more);
}

Predicted collective(int nodes, const std::string& size) {
  return Predicted("cluster: { node: dgx-a100-80gb, nodes: " + std::to_string(nodes) +
                   " }\nworkload: { collective: { operation: all_reduce, size: " + size + " } }\n");
}

}  // namespace

TEST_CASE("a step on one GPU is as uncertain as steps of its kind were") {
  const Predicted bf16 = gpt_on("dgx-a100-80gb", "bf16");
  const UncertaintyConstants& published = bf16.published();
  CHECK(bf16.share() == Approx(published.train));
  CHECK(bf16.result.warnings.empty());
  CHECK(gpt_on("dgx-h100", "fp8").share() == Approx(published.narrow));
  CHECK(gpt_on("dgx-b200", "bf16").share() == Approx(published.blackwell));
  CHECK(gpt_on("dgx-a100-80gb", "bf16", ", kernels: plain").share() == Approx(published.plain));
  CHECK(gpt_on("dgx-h100", "bf16", "", 131072).share() == Approx(published.long_sequence));
  CHECK(one_gpu("dgx1-v100-16gb", "model: resnet-50, precision: fp32").share() == Approx(published.network));
  CHECK(one_gpu("dgx1-v100-16gb", "model: resnet-50, precision: fp16").share() == Approx(published.mixed_network));
  CHECK(one_gpu("host-training", "model: lenet, precision: fp32").share() == Approx(published.processor));
}

TEST_CASE("a kind of GPU on which no step was measured has an interval half as wide again, and says so") {
  const Predicted unseen = gpt_on("t4-x1", "fp16");
  CHECK(unseen.share() == Approx(1.5 * unseen.published().train));
  CHECK(std::ranges::any_of(unseen.result.warnings, [](const std::string& warning) {
    return warning.find("no training step on turing GPUs") != std::string::npos;
  }));
}

TEST_CASE("what a step waits for communication is as uncertain as communication is") {
  for (const std::string sync : {"algorithm: ring", "algorithm: parameter_server, servers: 2, placement: colocated"}) {
    CAPTURE(sync);
    const Predicted step(
        "cluster: { node: p3.16xlarge, nodes: 2, gpus_per_node: 1, network: { nic_bandwidth: 10 Gbit/s } }\n"
        "workload: { train: { model: vgg-16, micro_batch: 8, precision: fp32 } }\nplan: { sync: { " +
        sync + " } }\n");
    const UncertaintyConstants& published = step.published();
    const double waits = step.result.train()->breakdown.exposed_communication / step.result.time();
    REQUIRE(waits > 0.1);
    const double other = sync == "algorithm: ring" ? published.between_nodes : published.servers;
    CHECK(step.share() == Approx(published.network + waits * (other - published.network)));
  }
}

TEST_CASE("collectives: small ones differ most from machine to machine") {
  const Predicted large = collective(1, "1 GB");
  const UncertaintyConstants& published = large.published();
  CHECK(large.share() == Approx(published.collective));
  CHECK(collective(1, "100 KB").share() == Approx(published.small_collective));
  CHECK(collective(2, "1 GB").share() == Approx(published.between_nodes));
  CHECK(collective(2, "4 MB").share() == Approx(published.small_between_nodes));
}

TEST_CASE("a kernel by itself") {
  const auto product = [](const char* node) {
    return Predicted(std::string("cluster: { node: ") + node +
                     " }\nworkload: { operator: { kind: matmul, m: 4096, n: 4096, k: 4096, precision: bf16 } }\n");
  };
  const Predicted ampere = product("dgx-a100-80gb");
  CHECK(ampere.share() == Approx(ampere.published().kernel));
  CHECK(product("dgx-b200").share() == Approx(std::max(ampere.published().kernel, ampere.published().blackwell)));
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
