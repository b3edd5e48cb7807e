// Explicit algorithms on concrete links: the expected times are worked out by hand from bytes over bandwidth.

#include "model/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/calls.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/collectives/rows.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

CollectiveCall parameter_server(Bytes size, int ranks, ServerPlacement placement, int servers) {
  CollectiveCall call = call_of(SyncAlgorithm::parameter_server, size, iota(ranks));
  call.placement = placement;
  call.servers = servers;
  return call;
}

/// One GPU per node, all equal links: `nodes` nodes with one card of 10 GB/s each and no latency.
Cluster equal_links(int nodes, Seconds latency = 0.0_s) {
  Node node = pcie_switch_node(1, 100.0_GBps);
  for (LinkType& type : node.link_types) type.latency = Seconds(0.0);
  node.nic_attachment = {2};
  node.nic_attachment_link = node.link_types[0];
  node.network = {1, 80.0_Gbitps, 1.0, latency, 1.0, true};
  return cluster_of(node, nodes);
}

/// All that have a schedule.
std::vector<SyncAlgorithm> explicit_algorithms() {
  std::vector<SyncAlgorithm> all;
  for (const AlgorithmRow& row : algorithm_table()) {
    if (row.operation == CollectiveOperation::all_reduce) all.push_back(row.algorithm);
  }
  return all;
}

}  // namespace

TEST_CASE("zero bytes cost the latency of the phases and nothing else") {
  const Topology topology(cluster_of(pcie_switch_node(4, 16.0_GBps)));
  // A route between GPUs, or to the host, crosses two links of 1 µs. Ring: 6 phases; naive and parameter server: 2.
  CHECK(milliseconds(SyncAlgorithm::ring, 0.0_B, iota(4), topology) == Approx(0.012));
  CHECK(milliseconds(SyncAlgorithm::naive, 0.0_B, iota(4), topology) == Approx(0.004));
  CHECK(milliseconds(parameter_server(0.0_B, 4, ServerPlacement::cpu, 1), topology) == Approx(0.004));
}

TEST_CASE("one rank alone has nothing to do") {
  const Topology topology(cluster_of(pcie_switch_node(4, 16.0_GBps)));
  for (const SyncAlgorithm algorithm : explicit_algorithms()) {
    CollectiveCall call = call_of(algorithm, 160.0_MB, {2});
    call.placement = ServerPlacement::gpu;
    CHECK(uncontended_time(lower(call, topology, Calibration{}), topology).value() == Approx(0.0).margin(1e-12));
  }
}

TEST_CASE("groups that share a link slow each other down, others do not") {
  const Topology pcie(cluster_of(pcie_switch_node(4, 16.0_GBps)));
  CollectiveCall pairs = call_of(SyncAlgorithm::ring, 160.0_MB, {0, 1});
  pairs.groups = {{0, 1}, {2, 3}};
  // Two phases of 80 MB at 16 GB/s; the pairs meet in the switch only.
  CHECK(milliseconds(pairs, pcie) == Approx(10.0).epsilon(0.01));
  // Both servers in the host's memory: four workers' messages cross its one link each way.
  CollectiveCall servers = parameter_server(160.0_MB, 2, ServerPlacement::cpu, 1);
  servers.groups = {{0, 1}, {2, 3}};
  CHECK(milliseconds(servers, pcie) == Approx(80.0).epsilon(0.01));
}

TEST_CASE("dedicated servers stand on nodes without workers") {
  // Two workers and two more nodes; the worker's card carries the message out and back at 10 GB/s; with one server its
  // card takes both messages.
  const Topology topology(equal_links(4));
  CHECK(milliseconds(parameter_server(160.0_MB, 2, ServerPlacement::dedicated, 1), topology) ==
        Approx(64.0).epsilon(0.01));
  CHECK(milliseconds(parameter_server(160.0_MB, 2, ServerPlacement::dedicated, 2), topology) ==
        Approx(32.0).epsilon(0.01));
  CHECK_THROWS_WITH(lower(parameter_server(1.0_MB, 4, ServerPlacement::dedicated, 1), topology, Calibration{}),
                    Catch::Contains("add nodes"));
}

TEST_CASE("calls that cannot be carried out are refused") {
  const Topology topology(cluster_of(dgx1_node(), 2));
  const auto impossible = [&](const CollectiveCall& call) {
    CHECK_THROWS_AS(lower(call, topology, Calibration{}), ImpossiblePlan);
  };
  impossible(call_of(SyncAlgorithm::hierarchical, 1.0_MB, {0, 1, 8}));
  CollectiveCall scatter = call_of(SyncAlgorithm::tree, 1.0_MB, {0, 1});
  scatter.operation = CollectiveOperation::reduce_scatter;
  impossible(scatter);
  CollectiveCall no_server = call_of(SyncAlgorithm::parameter_server, 1.0_MB, {0, 1});
  no_server.servers = 0;
  impossible(no_server);
}

TEST_CASE("rings are lowered without materialising their phases") {
  const Topology topology(cluster_of(nvswitch_node(), 128));
  const LoweredCollective ring = lower(call_of(SyncAlgorithm::ring, 1.0_GB, iota(1024)), topology, Calibration{});
  REQUIRE(ring.phases.size() == 1);
  CHECK(ring.phases.front().repeat == 2 * 1023);
  CHECK(ring.phases.front().flows.size() == 1024);

  CollectiveCall groups;
  groups.algorithm = SyncAlgorithm::ring;
  groups.size = 1.0_GB;
  for (int group = 0; group < 64; ++group) {
    std::vector<int> members;
    for (int member = 0; member < 16; ++member) members.push_back(group + 64 * member);
    groups.groups.add(members);
  }
  for (const CollectiveCall& call : {call_of(SyncAlgorithm::ring, 1.0_GB, iota(1024)), groups}) {
    CHECK(milliseconds(call, topology) > 0.0);
  }
}

TEST_CASE("operations of a ring move the bytes that nccl-tests counts") {
  // 8 ranks on NVSwitch at 300 GB/s: gather and scatter (n-1)/n · S, send-receive S, all-to-all (n-1)/n · S.
  const Topology topology(cluster_of(nvswitch_node()));
  const auto time = [&](CollectiveOperation operation) {
    CollectiveCall call = call_of(SyncAlgorithm::ring, 2400.0_MB, iota(8));
    call.operation = operation;
    return milliseconds(call, topology);
  };
  CHECK(time(CollectiveOperation::all_gather) == Approx(7.0).epsilon(0.01));
  CHECK(time(CollectiveOperation::reduce_scatter) == Approx(7.0).epsilon(0.01));
  CHECK(time(CollectiveOperation::all_to_all) == Approx(7.0).epsilon(0.01));
  CHECK(time(CollectiveOperation::send_receive) == Approx(8.0).epsilon(0.01));
  // A chain of 7 hops in 32 pieces of 75 MB: 38 pieces' time of 0.25 ms, and 38 phases of 2 µs.
  CHECK(time(CollectiveOperation::broadcast) == Approx(38 * 0.252).epsilon(0.01));
  CHECK(time(CollectiveOperation::reduce) == Approx(38 * 0.252).epsilon(0.01));
}
