#include "model/training/transfers/transfer_times.hpp"

#include "model/training/transfers/known_transfers.hpp"
#include "tests/catch.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

Seconds least(std::vector<Flow> flows, const std::vector<int>& group_of_rank) {
  const Topology topology(cluster_of(dgx1_node(), 2));
  LoweredCollective lowered;
  lowered.phases.push_back({.latency = Seconds(0.0), .flows = std::move(flows), .repeat = 2});
  return least_time(lowered, group_of_rank, topology);
}

}  // namespace

TEST_CASE("The least of a transfer's groups is that on the widest links, with nothing but its own on them") {
  const Bytes bytes(25e9);
  // NVLink joins GPUs 0 and 1 with 25 GB/s, 5 and 6 with 50.
  std::vector<int> groups(16, -1);
  groups[0] = groups[1] = groups[8] = 0;
  groups[5] = groups[6] = groups[13] = 1;
  CHECK(least({{0, 1, bytes}}, groups).value() == Approx(2.0));
  CHECK(least({{0, 1, bytes}, {5, 6, bytes}}, groups).value() == Approx(1.0));
  const Seconds alone = least({{0, 8, bytes}}, groups);
  CHECK(least({{0, 8, bytes}, {5, 13, bytes}}, groups).value() == Approx(alone.value()));
  CHECK(alone.value() > 2.0);                            // cards are slower
  CHECK(least({{0, 5, bytes}}, groups).value() == 0.0);  // of two groups: nobody's
}

TEST_CASE("A stage whole nodes behind another has its groups, one within its node has its own") {
  const Topology topology(cluster_of(dgx1_node(), 2));
  for (const int tensor : {8, 4}) {
    Plan plan;
    plan.tensor = tensor;
    plan.pipeline = 2;
    KnownTransfers known(topology, RankLayout(plan), true);
    CHECK(known.groups(GroupKind::tensor, 1, topology).model_stage == (tensor == 8 ? 0 : 1));
  }
}
