// How much of the tokens' copies travels between the ranks that hold experts.
#include "model/training/expert_dispatch.hpp"

#include <numeric>
#include <string>

#include "model/job/job.hpp"
#include "model/scenario/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Topology machines(int nodes) {
  const Scenario scenario = load_scenario_text("cluster: { node: dgx-h100, nodes: " + std::to_string(nodes) + " }\n" +
                                                   "workload: { collective: { operation: all_to_all, size: 1 MB } }\n",
                                               "dispatch");
  return Topology(scenario.cluster);
}

std::vector<int> all_ranks(const Topology& topology) {
  std::vector<int> group(static_cast<std::size_t>(topology.gpus()));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

double share(int copies, int nodes) {
  const Topology topology = machines(nodes);
  return dispatched_share(copies, all_ranks(topology), topology);
}

}  // namespace

TEST_CASE("a token goes once to each rank that holds its experts") {
  // One copy goes to one rank. Of eight copies over eight ranks, 8 · (1 - (7/8)^8) = 5.25 meet different ranks: 66 %.
  CHECK(share(1, 1) == Approx(1.0));
  CHECK(share(8, 1) == Approx(0.6564).epsilon(1e-3));
}

TEST_CASE("between nodes a token goes once to each node") {
  // Of eight copies over two nodes, 2 · (1 - 1/2^8) = 1.99 nodes are met: 25 %; over four, 4 · (1 - (3/4)^8) = 3.6.
  CHECK(share(8, 2) == Approx(1.9922 / 8).epsilon(1e-3));
  CHECK(share(8, 4) == Approx(3.5995 / 8).epsilon(1e-3));
}

TEST_CASE("interleaved pipelines hide what crosses the network, not what stays on NVLink") {
  const Topology one = machines(1), two = machines(2);
  Plan plan;
  plan.interleave = 4;
  CHECK(hides_dispatch(plan, all_ranks(two), two));
  CHECK_FALSE(hides_dispatch(plan, all_ranks(one), one));
  plan.sync.overlap = false;
  CHECK_FALSE(hides_dispatch(plan, all_ranks(two), two));
  plan.sync.overlap = true;
  plan.interleave = 1;
  CHECK_FALSE(hides_dispatch(plan, all_ranks(two), two));
}

TEST_CASE("The same machines in another order, on which the same ranks lie, take the same time") {
  // Two nodes of four GPUs and one of eight; ranks 0 to 7, the first group of experts, lie on the one of eight.
  const auto step = [](const std::string& groups, const std::string& placement) {
    const std::string text = "cluster: { groups: [ " + groups + " ] }\n" + R"(
workload:
  train:
    model: { family: gpt, layers: 8, hidden: 2048, heads: 16, vocabulary: 32768, sequence: 2048, experts: 8,
             experts_per_token: 4 }
    global_batch: 16
    precision: bf16
plan: { data: 16, expert: 8, zero: 1, placement: )" +
                             placement + " }\n";
    return estimate(load_scenario_text(text, "groups.yaml")).time().value();
  };
  const std::string small = "{ node: dgx-h100, nodes: 2, gpus_per_node: 4 }", large = "{ node: dgx-h100, nodes: 1 }";
  CHECK(step(small + ", " + large, "[2, 0, 1]") == Approx(step(large + ", " + small, "[0, 1, 2]")).epsilon(1e-12));
}
