// Gloo's collectives between processors, against its schedules and the figures of host-core-2.6.
#include "model/collectives/gloo.hpp"

#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/calls.hpp"
#include "tests/collectives/ranks.hpp"

using namespace foretrain;
using test_nodes::iota;

namespace {

constexpr double card = 1e9 / 8.0 * 1448.0 / 1514.0;  // bytes a second: 1 Gbit/s less TCP's headers
constexpr double message = 0.140e-3, wake = 0.132e-3, beside = 0.069e-3, sum_rate = 0.861e9, latency = 25e-6;

/// Seconds of a collective between hosts of the given share of a core.
double time_of(CollectiveOperation operation, int hosts, double bytes, double share = 1.0) {
  const Scenario scenario =
      load_scenario("parallel-hosts", {fmt::format("cluster.nodes={}", hosts), fmt::format("plan.data={}", hosts / 2),
                                       fmt::format("cluster.node.gpu.processor.share={}", share)});
  return milliseconds(SyncAlgorithm::automatic, Bytes(bytes), iota(hosts), Topology(scenario.cluster), operation) *
         1e-3;
}

}  // namespace

/// Of a ring: two pieces sent, two received and waited for.
constexpr double pieces = 4.0 * message + 2.0 * wake;

TEST_CASE(
    "a step of a small ring takes the core's time of two pieces sent and two received, and until these are seen") {
  for (const int hosts : {2, 4, 8}) {
    const double steps = 2.0 * (hosts - 1), sent = 8e3 * steps / hosts;
    CHECK(time_of(CollectiveOperation::all_reduce, hosts, 8e3) ==
          Approx(steps * (pieces + latency) + beside + sent / sum_rate + sent / card).epsilon(0.02));
  }
}

TEST_CASE("what the links take of a large ring comes on top") {
  // 10 MB from each of four: 2.5 MB a step.
  CHECK(time_of(CollectiveOperation::all_reduce, 4, 10e6) ==
        Approx(6.0 * (pieces + 2.5e6 / card + latency) + beside + 15e6 / sum_rate).epsilon(0.001));
}

TEST_CASE(
    "a share of a core holds up what would keep it busy for longer, and neither what waits for links nor for "
    "messages") {
  CHECK(time_of(CollectiveOperation::all_gather, 4, 8e3, 0.25) ==
        Approx(4.0 * (3.0 * 4.0 * message + beside + 6e3 / sum_rate) + 3.0 * 2.0 * wake));
  CHECK(time_of(CollectiveOperation::all_gather, 4, 10e6, 0.5) == time_of(CollectiveOperation::all_gather, 4, 10e6));
}

TEST_CASE("the slowest processor of a group decides, whichever rank it is") {
  Cluster alike = load_scenario("parallel-hosts", {"cluster.nodes=4", "plan.data=2"}).cluster;
  const auto time_on = [](const Cluster& cluster) {
    return milliseconds(SyncAlgorithm::automatic, Bytes(8e3), iota(4), Topology(cluster),
                        CollectiveOperation::all_reduce);
  };
  Cluster mixed = alike;
  Node slow = alike.node;
  slow.gpu.processor->message *= 2.0;
  mixed.groups = {{alike.node, 3, 1, alike.network}, {slow, 1, 1, alike.network}};
  CHECK(time_on(mixed) > 1.5 * time_on(alike));
  alike.node = slow;
  CHECK(time_on(mixed) == Approx(time_on(alike)));
}

TEST_CASE("two hosts that owe each other a message each take turns") {
  // 5 MB each way, one after the other; of an all-gather the second halves pass at the same time.
  const double other = beside + 5e6 / sum_rate + latency;
  CHECK(time_of(CollectiveOperation::all_to_all, 2, 10e6) ==
        Approx(2.0 * 5e6 / card + 2.0 * (message + wake) + other).epsilon(0.001));
  CHECK(time_of(CollectiveOperation::all_gather, 2, 10e6) == Approx(1.5 * 5e6 / card + pieces + other).epsilon(0.001));
  CHECK(time_of(CollectiveOperation::all_gather, 4, 10e6) ==
        Approx(3.0 * (pieces + 2.5e6 / card + latency) + beside + 7.5e6 / sum_rate).epsilon(0.001));
}

TEST_CASE("the hottest of four ranks gets more than the others, and owes them less in return") {
  const Topology hosts(load_scenario("parallel-hosts", {"cluster.nodes=4", "plan.data=2"}).cluster);
  CollectiveCall call = call_of(SyncAlgorithm::automatic, 40.0_MB, iota(4), CollectiveOperation::all_to_all);
  const double even = milliseconds(call, hosts);
  call.tokens.imbalance = 1.6;
  // Of three messages each way: 1.6 + 0.8 instead of 1 + 1.
  CHECK((milliseconds(call, hosts) - even) * 1e-3 == Approx(0.4 * 30e6 / card).epsilon(0.01));
}

TEST_CASE("turns of an all-to-all load a cable that all share half as long again, not twice") {
  const Topology hosts(load_scenario("parallel-hosts", {"cluster.nodes=4", "plan.data=2",
                                                        "cluster.network.fabric={ kind: fat_tree, nodes_per_leaf: 2, "
                                                        "oversubscription: 20 }"})
                           .cluster);
  // Four messages of 10 MB each way over a tenth of a card. Of ranks that come 0, 2, 1, 3 three send one way first, one
  // the other way.
  const CollectiveCall call = call_of(SyncAlgorithm::automatic, 40.0_MB, iota(4), CollectiveOperation::all_to_all);
  CHECK(milliseconds(call, hosts) * 1e-3 == Approx((3.0 + 3.0) * 10e6 / (card / 10.0)).epsilon(0.01));
}

TEST_CASE("broadcasts whose roots are all ranks in turn take the mean of these") {
  const Topology hosts(load_scenario("parallel-hosts", {"cluster.nodes=4", "plan.data=2",
                                                        "cluster.faults=[{ node: 0, card: 0, bandwidth: 1 % }]"})
                           .cluster);
  CollectiveCall call = call_of(SyncAlgorithm::ring, 10.0_MB, iota(4), CollectiveOperation::broadcast);
  const double slow = 10e6 / (card / 100.0);
  CHECK(milliseconds(call, hosts) * 1e-3 == Approx(2.0 * slow).epsilon(0.01));
  call.rotating_root = true;
  // From ranks 0 and 2 the slow one receives or sends at both levels, from 1 and 3 at the second one.
  CHECK(milliseconds(call, hosts) * 1e-3 == Approx((2.0 + 1.0 + 2.0 + 1.0) / 4.0 * slow).epsilon(0.03));
}

TEST_CASE("a broadcast is a binomial tree, whose root sends once a level") {
  CHECK(time_of(CollectiveOperation::broadcast, 4, 10e6) ==
        Approx(2.0 * (message + wake + 10e6 / card + latency) + beside + 10e6 / sum_rate).epsilon(0.001));
}

TEST_CASE("GPUs do not speak Gloo, and no processor does what the user names otherwise") {
  const Topology gpus(load_scenario("sync-ring-8-v100").cluster), hosts(load_scenario("parallel-hosts").cluster);
  CHECK_FALSE(call_of_gloo(call_of(SyncAlgorithm::ring, Bytes(8e3), iota(8)), gpus));
  const std::optional<CollectiveCall> call =
      call_of_gloo(call_of(SyncAlgorithm::automatic, Bytes(8e3), iota(2)), hosts);
  REQUIRE(call);
  CHECK(call->algorithm == SyncAlgorithm::ring);
  CHECK_FALSE(call_of_gloo(call_of(SyncAlgorithm::halving_doubling, Bytes(8e3), iota(2)), hosts));
}
