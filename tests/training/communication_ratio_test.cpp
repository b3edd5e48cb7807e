// The textbook's communication ratio, on rings inside and between nodes.
#include "model/training/outcome/communication_ratio.hpp"

#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"

using namespace foretrain;
using foretrain::test::BuiltStep;

namespace {

BuiltStep gpt(int nodes, int tensor, int data) {
  return BuiltStep(load_scenario_text(R"(
cluster: { node: dgx-a100-80gb }
workload:
  train:
    model: { family: gpt, layers: 2, hidden: 1024, heads: 16, vocabulary: 32000, sequence: 1024 }
    global_batch: 32
)",
                                      "gpt.yaml",
                                      {"cluster.nodes=" + std::to_string(nodes),
                                       "plan.tensor=" + std::to_string(tensor), "plan.data=" + std::to_string(data)}));
}

std::optional<CommunicationRatio> ratio_of(const BuiltStep& built, const Breakdown& breakdown) {
  std::string name;
  for (const Step::Transfer& transfer : built.step.transfers) {
    if (is_of_parameters(transfer.kind)) name = transfer.name;
  }
  return communication_ratio(built.scenario, built.train(), built.step, built.topology, breakdown,
                             {{name, {Seconds(3.0), Seconds(0.0)}}, {"something else", {Seconds(50.0), Seconds(0.0)}}});
}

/// The bandwidth with which the formula counts: twice a GPU's gradients over it and over the arithmetic at the peak.
double bandwidth_of(const BuiltStep& built) {
  Breakdown breakdown;
  breakdown.compute = Seconds(2.0);
  const double at_peak = built.step.model_flops_per_gpu.value() /
                         peak_rate(built.scenario.plan, built.scenario.cluster, built.train().precision).value();
  const double gradients = bytes_per_element(built.scenario.plan.sync.gradient_precision).value();
  return 2.0 * gradients * built.step.parameters_per_gpu / at_peak / ratio_of(built, breakdown)->formula;
}

}  // namespace

TEST_CASE("Gradients go round a ring as fast as its narrowest hop: NVLink inside a node, its share of cards between") {
  const BuiltStep inside = gpt(1, 4, 2);
  CHECK(bandwidth_of(inside) == Approx(inside.topology.route(0, 4).bandwidth.value()));
  // One ring leaves the node by all of its cards; the rings of eight tensor ranks have an eighth of them each.
  const BuiltStep one = gpt(2, 1, 16), eight = gpt(2, 8, 2);
  const Network& network = one.scenario.cluster.network;
  const double cards =
      network.nics_per_node * network.nic_bandwidth.value() * network.efficiency * network.share_left(2);
  REQUIRE(cards < one.topology.route(0, 1).bandwidth.value());
  CHECK(bandwidth_of(one) == Approx(cards));
  CHECK(bandwidth_of(eight) == Approx(cards / 8.0));
  // NVLink is the narrowest where cards are wide.
  BuiltStep wide = gpt(2, 1, 16);
  wide.scenario.cluster.network.nic_bandwidth = BytesPerSecond(1e12);
  CHECK(bandwidth_of(wide) == Approx(wide.topology.route(0, 1).bandwidth.value()));
}

TEST_CASE("What was simulated counts transfers of parameters alone, over what kernels took") {
  const BuiltStep built = gpt(1, 1, 8);
  Breakdown breakdown;
  CHECK_FALSE(ratio_of(built, breakdown));  // nothing was computed
  breakdown.compute = Seconds(2.0);
  CHECK(ratio_of(built, breakdown)->simulated == Approx((built.step.gradient_norm.value() + 3.0) / 2.0));
  const BuiltStep alone = gpt(1, 8, 1);
  CHECK_FALSE(ratio_of(alone, breakdown));  // no replicas
}
