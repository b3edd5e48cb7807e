// Cold caches of a processor after a wait.
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Seconds by which a step of four hosts divided this way computes longer for a millisecond more after each wait.
double longer(const std::string& way) {
  const auto computed = [&](const char* after_wait) {
    const Scenario scenario = load_scenario(
        "parallel-hosts",
        {fmt::format("cluster.node.gpu.processor.after_wait={}", after_wait), "cluster.nodes=4", "plan.tensor=1", way});
    return estimate(scenario).train()->breakdown.compute.value();
  };
  return computed("2 ms") - computed("1 ms");
}

}  // namespace

TEST_CASE("a core that has waited for tensor ranks computes longer after each collective") {
  // Two of each layer's passes, one of the embedding, four of the head and its loss.
  CHECK(longer("plan.tensor=4") == Approx((8 * 4 + 1 + 4) * 1e-3));
  // Gradients are added up beside the backward pass, which does not wait for them.
  CHECK(longer("plan.data=4") == 0.0);
}

TEST_CASE("a core that passes keys and values round a ring waits once for each that it receives") {
  // Three rounds a layer (two of them backward) of three messages, beside which the core computes more slowly.
  CHECK(longer("plan.context=4") >= 8 * 3 * 3 * 1e-3);
  CHECK(longer("plan.context=4") < 1.3 * 8 * 3 * 3 * 1e-3);
}
