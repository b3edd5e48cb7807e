// Layers whose host waits for counts of tokens: how long the device idles behind that, and what graphs of parts spare.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "model/training/pricing/layer_cost.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

HostConstants host() {
  HostConstants constants{};
  constants.launch_latency_us = 4.0;
  constants.synchronize_us = 5.0;
  return constants;
}

CountedPass pass(double launches_us, double device_us) {
  CountedPass of;
  of.fill({Seconds(launches_us * 1e-6), Seconds(device_us * 1e-6)});
  return of;
}

double idle_us(const CountedPass& of, double exchanges_us) {
  return idle_behind_counts(of, Seconds(exchanges_us * 1e-6), host()).value() * 1e6;
}

/// A node of eight, sixteen small experts on each of its GPUs.
Scenario experts(const std::vector<std::string>& changes) {
  return load_scenario_text(R"(
cluster: { node: dgx-h100, nodes: 1 }
workload:
  train:
    model: { family: llama, layers: 4, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024, ffn_hidden: 768,
             experts: 128, experts_per_token: 8 }
    global_batch: 8
    precision: bf16
plan: { expert: 8, zero: 1 }
)",
                            "experts.yaml", changes);
}

double step(const std::vector<std::string>& changes) { return estimate(experts(changes)).time().value(); }

LayerCost price(const std::vector<std::string>& changes) {
  const BuiltStep b(experts(changes));
  return LayerPricer(b.scenario, b.train()).price(b.model.layers[1].layer);
}

}  // namespace

TEST_CASE("behind counts of tokens a device waits for a launch and the host for its end") {
  // Kernels that are long beside their launches: the first begins a latency of 4 us late, the end is seen 5 us late.
  CHECK(idle_us(pass(1.0, 100.0), 0.0) == Approx(9.0));
  CHECK(idle_us(pass(1.0, 100.0), 60.0) == Approx(9.0));
  // Launches that are long beside their kernels: the last kernel's end follows its launch by the latency at least.
  CHECK(idle_us(pass(100.0, 1.0), 0.0) == Approx(9.0));
}

TEST_CASE("launches and kernels that are as long in sum but not piece by piece cost both") {
  // 100 us of launches of short kernels (10 us), then 10 us of launches of long ones (100 us), twice 10 and 10: the
  // device is done at max(4 + 10, 100 + 4) = 104, then 204, then 214; 5 us later that is seen. Launches take 120 us and
  // kernels 120: 219 − 120 = 99 us.
  CountedPass of = pass(10.0, 10.0);
  of[0] = {Seconds(100e-6), Seconds(10e-6)};
  of[1] = {Seconds(10e-6), Seconds(100e-6)};
  CHECK(idle_us(of, 0.0) == Approx(99.0));
  // Exchanges of 30 us each, one behind the short kernels: 104 + 30 + 100 + 30 + 10 + 5 − (120 + 60).
  CHECK(idle_us(of, 60.0) == Approx(99.0));
}

TEST_CASE("a layer is counted where its experts have as many rows as tokens chose them") {
  CHECK(price({}).counted.has_value());
  CHECK_FALSE(price({}).counted_again);
  CHECK(price({"workload.train.recompute=full"}).counted_again);
  // With a capacity all have as many; a graph of the whole step has no host in it; dense layers have no counts.
  CHECK_FALSE(price({"workload.train.model.expert_capacity=1"}).counted.has_value());
  CHECK_FALSE(price({"plan.execution=cuda_graph"}).counted.has_value());
}

TEST_CASE("parts of layers that are launched as graphs spare the host their launches") {
  // Sixteen experts, of 1,024 tokens and less: the host is what a step waits for.
  const double plain = step({}), router = step({"plan.graphed_parts=router"}),
               attention = step({"plan.graphed_parts=attention"}),
               both = step({"plan.graphed_parts=attention_and_router"});
  CHECK(router < plain);
  CHECK(attention < plain);
  CHECK(both < router);
  CHECK(both < attention);
  CHECK(step({"plan.execution=cuda_graph"}) < both);
  // Kernels stay what they are.
  CHECK(price({"plan.graphed_parts=router"}).forward.kernels == price({}).forward.kernels);
}
