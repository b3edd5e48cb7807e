// Bytes of each kind of collective inside layers, and their total time.
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Result predicted(const std::string& plan, const std::string& model, int batch = 8) {
  return predict(load_scenario_text("cluster: { node: dgx-h100, nodes: 2 }\nworkload: { train: { model: " + model +
                                        ", global_batch: " + std::to_string(batch) +
                                        ", micro_batch: 1, precision: bf16 } }\nplan: { " + plan + " }\n",
                                    "inside.yaml"),
                 Fidelity::estimate, Detail::numbers);
}

constexpr const char* experts =
    "{ family: llama, layers: 4, hidden: 2048, heads: 16, ffn_hidden: 1024, vocabulary: 32000, sequence: 2048, "
    "experts: 16, experts_per_token: 2 }";

}  // namespace

TEST_CASE("Tensor ranks gather and scatter as often as the papers say, each seven eighths of the activations") {
  // Korthikanti et al., section 4.2.2: two gathers and two scatters of a layer in each direction; what is not kept is
  // gathered twice more for gradients of weights. One micro-batch each of two replicas, 8 samples: four of each.
  const Result result =
      predicted("tensor: 8, data: 2, sequence_parallel: true",
                "{ family: llama, layers: 4, hidden: 4096, heads: 32, vocabulary: 32000, sequence: 2048 }");
  const auto& kinds = result.train()->inside_layers;
  const InsideTraffic& gathers = kinds.at("tensor-parallel gather");
  const InsideTraffic& scatters = kinds.at("tensor-parallel scatter");
  const double one = 7.0 / 8.0 * 2048 * 4096 * 2;  // bytes that each GPU sends for one
  // Four layers with two of each kind a pass, the embedding's scatter and its gradients' gather, the head's likewise.
  CHECK(scatters.count == 4 * (2 * 4 * 2 + 2));
  CHECK(scatters.sent.value() == Approx(scatters.count * one));
  CHECK(gathers.count >= scatters.count);
  CHECK(gathers.sent.value() == Approx(gathers.count * one));
  CHECK(result.train()->communication.at("collectives inside layers").sent >= gathers.sent + scatters.sent);
}

TEST_CASE("Experts' tokens go there and come back, twice a micro-batch") {
  const Result result = predicted("data: 16, expert: 16", experts, 16);
  const auto& kinds = result.train()->inside_layers;
  const InsideTraffic& there = kinds.at("expert dispatch");
  const InsideTraffic& back = kinds.at("expert combine");
  CHECK(there.count == 4 * 2);  // four layers, forward and backward, one micro-batch
  CHECK(back.count == there.count);
  // Two copies of each of 2,048 tokens of 2,048 bf16 numbers, of which a sixteenth stays.
  CHECK(there.sent.value() == Approx(8 * 15.0 / 16.0 * 2 * 2048 * 2048 * 2));
  CHECK(back.sent.value() == Approx(there.sent.value()));
  // All that is inside layers is these, one after the other.
  CHECK((there.alone + back.alone).value() ==
        Approx(result.train()->communication.at("collectives inside layers").total.value()).epsilon(1e-6));
}

TEST_CASE("Gradients of experts have a row of their own") {
  // Eight ranks share the experts, so that two replicas of each sum their gradients; all sixteen sum the others'.
  const Result result = predicted("data: 16, expert: 8", experts, 16);
  const auto& rows = result.train()->communication;
  CHECK(rows.contains("gradient all-reduce"));
  CHECK(rows.contains("expert gradient all-reduce"));
  CHECK(rows.at("expert gradient all-reduce").sent > Bytes(0.0));
}

TEST_CASE("A breakdown adds up to the step where dispatch goes on beside passes that are cut") {
  const Scenario scenario = load_scenario_text(R"(
cluster: { node: dgx-h100, nodes: 2 }
workload:
  train:
    model: { preset: qwen3-30b-a3b, layers: 4 }
    global_batch: 4
    micro_batch: 1
    precision: bf16
    recompute: full
plan: { data: 4, tensor: 4, sequence_parallel: true, zero: 3 }
)",
                                               "dispatch.yaml");
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows, Fidelity::steps}) {
    const TrainResult train = *predict(scenario, fidelity, Detail::numbers).train();
    CHECK(train.breakdown.host_overhead > Seconds(0.01));
    CHECK(train.breakdown.total().value() == Approx(train.step_time.value()).epsilon(1e-12));
  }
}
