// Which GPU does what: plan.order and plan.placement, and what they cost on a fabric whose leaves are oversubscribed.
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/sim/gpt_16_layers.hpp"

using namespace foretrain;

namespace {

/// Eight nodes, four a leaf; the leaves' cables upward carry a sixteenth of what their cards can send.
const char* const two_leaves = R"(
cluster:
  node: dgx-a100-80gb
  nodes: 8
  network: { fabric: { kind: fat_tree, nodes_per_leaf: 4, oversubscription: 16 } }
)";

TrainResult train(const std::vector<std::string>& overrides, Fidelity fidelity = Fidelity::flows) {
  return *predict(load_scenario_text(std::string(two_leaves) + test::gpt_16_layers, "gpt.yaml", overrides), fidelity)
              .train();
}

Seconds gradients(const TrainResult& result) { return result.communication.at("gradient all-reduce").total; }

}  // namespace

TEST_CASE("replicas on two leaves send their gradients through the leaves' few cables") {
  // Two replicas of one node each. On one leaf eight cards carry their eight rings. On two leaves these rings share
  // what leaves a leaf: 4 nodes x 8 cards ÷ 16 = 2 cards, a quarter of the eight, so that they take four times as long.
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const Seconds near = gradients(train({"plan.placement=[0, 1]"}, fidelity));
    const Seconds far = gradients(train({"plan.placement=[0, 4]"}, fidelity));
    CHECK(far / near == Approx(4.0).epsilon(0.02));
    // Nodes of one leaf are alike, and so are leaves.
    CHECK(gradients(train({"plan.placement=[3, 2]"}, fidelity)).value() == Approx(near.value()).epsilon(1e-9));
    CHECK(gradients(train({"plan.placement=[6, 1]"}, fidelity)).value() == Approx(far.value()).epsilon(1e-9));
  }
}

TEST_CASE("stages on one leaf or replicas on one leaf: the order and the placement say the same") {
  // Four stages of two replicas. Stage by stage, nodes 2s and 2s + 1 hold a stage's replicas: their gradients stay on a
  // leaf. Replica by replica, or scattered over the leaves, they all have to cross.
  const std::vector<std::string> plan = {"plan.pipeline=4", "plan.data=2"};
  const auto step = [&](const char* order, const char* placement) {
    std::vector<std::string> overrides = plan;
    overrides.push_back(fmt::format("plan.order={}", order));
    overrides.push_back(fmt::format("plan.placement={}", placement));
    return train(overrides).step_time.value();
  };
  const double packed = step("tensor-data-pipeline", "packed");
  CHECK(train(plan).step_time.value() == Approx(packed).epsilon(1e-12));  // what holds where nothing is said
  const double crossing = step("tensor-data-pipeline", "scattered");      // nodes 0, 4, 1, 5, 2, 6, 3, 7
  CHECK(crossing > 1.1 * packed);
  // SimGrid counts whole bytes: each of some hundred transfers may be half a nanosecond off.
  CHECK(step("tensor-pipeline-data", "packed") == Approx(crossing).epsilon(1e-8));
  CHECK(step("tensor-data-pipeline", "[0, 4, 1, 5, 2, 6, 3, 7]") == Approx(crossing).epsilon(1e-8));
}

TEST_CASE("a job uses the nodes of its placement and no others") {
  // Of eight nodes four are used: a slow GPU on another one costs nothing, on one of them it does.
  const std::vector<std::string> half = {"plan.placement=[4..7]"};
  const auto with_slow_gpu = [&](int node) {
    std::vector<std::string> overrides = half;
    overrides.push_back(fmt::format("cluster.faults=[{{ node: {}, gpu: 2, speed: 50 % }}]", node));
    return train(overrides);
  };
  const TrainResult whole = train(half);
  CHECK(with_slow_gpu(1).step_time.value() == Approx(whole.step_time.value()).epsilon(1e-9));
  CHECK(with_slow_gpu(5).breakdown.compute / whole.breakdown.compute > 1.5);
  // 16 samples on 32 GPUs: what each of them achieves counts, not what the cluster could.
  CHECK(whole.tokens_per_second_per_gpu == Approx(16 * 2048 / whole.step_time.value() / 32).epsilon(1e-9));
  CHECK(train({"plan.data=4", "plan.placement=packed"}).step_time.value() ==
        Approx(whole.step_time.value()).epsilon(1e-9));
}
