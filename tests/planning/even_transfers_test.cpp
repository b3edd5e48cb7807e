#include "model/planning/even_transfers.hpp"

#include "tests/catch.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

/// 25 GB from one GPU to another, which is said to take a second.
Step::Transfer transfer(int from, int to, GroupKind kind = GroupKind::gradients) {
  Step::Transfer::Part part;
  part.lowered.phases.push_back({.latency = Seconds(0.0), .flows = {{from, to, Bytes(25e9)}}, .repeat = 1});
  part.uncontended = Seconds(1.0);
  return {.name = "", .parts = {part}, .kind = kind};
}

bool even(std::vector<Step::Transfer> transfers, const Cluster& cluster = cluster_of(dgx1_node(), 2)) {
  Step step;
  step.transfers = std::move(transfers);
  return transfers_are_even(step, Topology(cluster));
}

}  // namespace

TEST_CASE("A transfer is even where each of its groups takes as long as it is said to") {
  // NVLink joins GPUs 0 and 1 with 25 GB/s, 1 and 2 with 50: there half a second is enough.
  CHECK(even({transfer(0, 1)}));
  CHECK_FALSE(even({transfer(1, 2)}));
  CHECK(even({transfer(1, 2, GroupKind::neighbours)}));  // of gradients and weights only
  // Two groups, of which one is faster than the transfer.
  Step::Transfer both = transfer(0, 1);
  both.parts[0].lowered.phases[0].flows.push_back({5, 6, Bytes(25e9)});
  CHECK_FALSE(even({both}));
}

TEST_CASE("What repeats an even transfer is even if it does so whole nodes further on") {
  CHECK(even({transfer(0, 1), transfer(8, 9)}));
  CHECK_FALSE(even({transfer(0, 1), transfer(1, 2)}));
  CHECK_FALSE(even({transfer(0, 1), transfer(9, 10)}));
}

TEST_CASE("What repeats an even transfer on another kind of node is looked at anew") {
  // GPUs 0 and 1 of a DGX-1 are joined with 25 GB/s, those behind the other node's switch with 300.
  Cluster cluster = cluster_of(dgx1_node(), 1);
  cluster.groups = {{dgx1_node(), 1, 8, cluster.network}, {nvswitch_node(), 1, 8, cluster.network}};
  cluster.nodes = 2;
  CHECK(even({transfer(0, 1)}, cluster));
  CHECK_FALSE(even({transfer(0, 1), transfer(8, 9)}, cluster));
}
