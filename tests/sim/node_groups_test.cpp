// Clusters whose nodes are of several kinds: all wait for the slowest, and the smallest GPU decides what fits.
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/sim/gpt_16_layers.hpp"

using namespace foretrain;

namespace {

const char* const hopper = "{ node: dgx-h100, nodes: 2 }";
const char* const ampere = "{ node: dgx-a100-80gb, nodes: 2 }";

Result result_on(const std::string& groups, const std::vector<std::string>& overrides = {},
                 Fidelity fidelity = Fidelity::flows) {
  const std::string text = "cluster: { groups: [ " + groups + " ] }\n" + test::gpt_16_layers;
  return predict(load_scenario_text(text, "groups.yaml", overrides), fidelity);
}

TrainResult train_on(const std::string& groups, const std::vector<std::string>& overrides = {},
                     Fidelity fidelity = Fidelity::flows) {
  return *result_on(groups, overrides, fidelity).train();
}

std::string both(const std::string& a, const std::string& b) { return a + ", " + b; }

}  // namespace

TEST_CASE("one group, or two of the same node, are a cluster of equal nodes") {
  const std::string four = "cluster: { node: dgx-a100-80gb, nodes: 4 }\n";
  const Scenario plain = load_scenario_text(four + test::gpt_16_layers, "groups.yaml");
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const double step = predict(plain, fidelity).train()->step_time.value();
    CHECK(train_on("{ node: dgx-a100-80gb, nodes: 4 }", {}, fidelity).step_time.value() == step);
    CHECK(train_on(both(ampere, ampere), {}, fidelity).step_time.value() == Approx(step).epsilon(1e-9));
  }
}

TEST_CASE("equal shares of a batch take as long as on the slower GPUs alone") {
  // Four replicas, two on H100 and two on A100, each with the same four samples: the faster ones wait. Gradients go
  // round all four nodes, through the A100 nodes' slower cards (200 instead of 400 Gbit/s).
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const TrainResult mixed = train_on(both(hopper, ampere), {}, fidelity);
    const TrainResult slow = train_on(both(ampere, ampere), {}, fidelity);
    const TrainResult fast = train_on(both(hopper, hopper), {}, fidelity);
    CHECK(mixed.step_time.value() == Approx(slow.step_time.value()).epsilon(1e-9));
    CHECK(fast.step_time < mixed.step_time);
    // Of the peak rates of both kinds: 989.4 and 312 TFLOP/s, half of the GPUs each.
    CHECK(mixed.mfu == Approx(slow.mfu * 312.0 / (0.5 * (989.4 + 312.0))).epsilon(1e-3));
  }
}

TEST_CASE("a job on the fast nodes of a mixed cluster runs as on these alone") {
  const TrainResult alone = train_on(hopper), among = train_on(both(ampere, hopper), {"plan.placement=[2, 3]"});
  CHECK(among.step_time.value() == Approx(alone.step_time.value()).epsilon(1e-9));
  CHECK(among.mfu == Approx(alone.mfu).epsilon(1e-9));
}

TEST_CASE("a pipeline over two kinds takes the slower stages' time for each micro-batch, and the faster ones' once") {
  // Two stages, m = 8 micro-batches, 8 layers each. Whole steps on one kind take (m + 1) · t for stages of t, so t is
  // known for both; with the fast stage first it is m · slow + fast.
  const std::vector<std::string> plan = {"plan.pipeline=2", "plan.data=1", "workload.train.global_batch=8",
                                         "plan.sync.overlap=true"};
  const auto passes = [&](const std::string& groups) {
    const TrainResult result = train_on(groups, plan, Fidelity::estimate);
    return (result.step_time - result.breakdown.optimizer - result.breakdown.host_overhead).value();
  };
  const std::string one_hopper = "{ node: dgx-h100 }", one_ampere = "{ node: dgx-a100-80gb }";
  const double fast = passes(both(one_hopper, one_hopper)) / 9.0, slow = passes(both(one_ampere, one_ampere)) / 9.0;
  CHECK(passes(both(one_hopper, one_ampere)) == Approx(8.0 * slow + fast).epsilon(0.03));
}

TEST_CASE("collectives inside layers over two kinds run at the slower kind's pace") {
  // Tensor parallelism over one node of each kind: both GPUs' kernels and the A100 node's cards are waited for.
  const std::vector<std::string> plan = {"plan.tensor=16"};
  const TrainResult mixed = train_on("{ node: dgx-h100 }, { node: dgx-a100-80gb }", plan);
  const TrainResult slow = train_on(ampere, plan), fast = train_on(hopper, plan);
  CHECK(mixed.step_time.value() == Approx(slow.step_time.value()).epsilon(1e-6));
  CHECK(mixed.step_time > fast.step_time);
}

TEST_CASE("the smallest GPU decides what fits, and the result says where it does not") {
  // ZeRO-0, two replicas: the same bytes on 80 and on 40 GB.
  const std::string large = "{ node: dgx-a100-80gb }", small = "{ node: dgx-a100-40gb }";
  const std::vector<std::string> plan = {"workload.train.model.layers=44"};
  CHECK(train_on(both(large, large), plan).memory.fits());
  const Result result = result_on(both(large, small), plan);
  CHECK_FALSE(result.train()->memory.fits());
  CHECK(result.train()->memory.capacity == train_on(small, plan).memory.capacity);
  CHECK(result.warnings.front().find("of node 1 and its like") != std::string::npos);
  // Of a pipeline's stages that which has least to spare: the last one, on the small GPUs.
  const TrainResult staged = train_on(both(large, small), {"plan.pipeline=2", "plan.data=1"});
  CHECK(staged.memory.node == 1);
}

TEST_CASE("nodes of a group may use some of their GPUs, and have a network of their own") {
  // 8 + 2 x 4 GPUs are two replicas of eight; the second one's tensor parallelism leaves its nodes.
  const std::string halves = "{ node: dgx-a100-80gb }, { node: dgx-a100-80gb, nodes: 2, gpus_per_node: 4 }";
  CHECK(train_on(halves).step_time > train_on(ampere).step_time);
  // Cards at a quarter in one of two groups: the ring of gradients takes four times as long, latencies apart.
  const std::string slow = "{ node: dgx-a100-80gb, network: { nic_bandwidth: 50 Gbit/s } }";
  const auto gradients = [](const TrainResult& result) { return result.communication.at("gradient all-reduce").total; };
  CHECK(gradients(train_on("{ node: dgx-a100-80gb }, " + slow)) / gradients(train_on(ampere)) ==
        Approx(4.0).epsilon(0.02));
}

TEST_CASE("the input pipeline of the slowest nodes holds up all") {
  // Eight replicas on each node decode 64 images of 1 ms a step with eight workers each: 64 workers on 128 cores, or on
  // 32, where half of the work waits. The step takes as long as where all nodes have 32.
  const auto step = [](const std::string& groups) {
    const std::string text = "cluster: { groups: [ " + groups + R"( ] }
workload:
  train:
    model: resnet-50
    global_batch: 1024
    micro_batch: 64
    precision: bf16
    optimizer: momentum
    loader: { workers: 8, per: sample, read: 0.1 ms, decode: 10 ms }
)";
    return predict(load_scenario_text(text, "loader.yaml"), Fidelity::estimate).train()->step_time.value();
  };
  const std::string whole = "{ node: dgx-a100-80gb }";
  const std::string few = "{ node: { preset: dgx-a100-80gb, cpu: { cores: 32 } } }";
  CHECK(step(both(few, whole)) == Approx(step(both(few, few))).epsilon(1e-9));
  CHECK(step(both(whole, few)) == Approx(step(both(few, few))).epsilon(1e-9));
  CHECK(step(both(whole, few)) > 1.2 * step(both(whole, whole)));
}
