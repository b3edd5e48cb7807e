// What a processor computes longer for as it has waited.
#include <fmt/format.h>

#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Seconds computed in a step of two hosts.
double computed(const char* after_wait, int tensor) {
  const Scenario scenario =
      load_scenario("parallel-hosts", {fmt::format("cluster.node.gpu.processor.after_wait={}", after_wait),
                                       fmt::format("plan.tensor={}", tensor), fmt::format("plan.data={}", 2 / tensor)});
  return estimate(scenario).train()->breakdown.compute.value();
}

}  // namespace

TEST_CASE("a core that has waited for tensor ranks computes longer after each collective") {
  // Two of each layer's passes, one of the embedding, four of the head and its loss.
  CHECK(computed("2 ms", 2) - computed("1 ms", 2) == Approx((8 * 4 + 1 + 4) * 1e-3));
  // Gradients are added up beside the backward pass, which does not wait for them.
  CHECK(computed("2 ms", 1) == computed("1 ms", 1));
}
