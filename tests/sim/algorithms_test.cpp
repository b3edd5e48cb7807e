// The algorithms of the table: both fidelities against the closed form, alone and beside other traffic.
#include "model/base/error.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/rows.hpp"
#include "tests/sim/graphs.hpp"

using namespace foretrain;
using namespace foretrain::test_graphs;
using namespace foretrain::test_nodes;

namespace {

struct Machine {
  std::string name;
  Topology topology;
};

/// Four GPUs and two cards of 10 GB/s behind a PCIe switch of 16 GB/s; the network's switches add up.
Node two_card_node() {
  Node node = pcie_switch_node(4);
  node.nic_attachment = {5};
  node.nic_attachment_link = node.link_types[0];
  node.network = {2, 80.0_Gbitps, 1.0, 5.0_us, 1.0, true};
  node.network.in_network_reduction = true;
  return node;
}

/// NVSwitches and a network that both add up.
Node reducing_node() {
  Node node = nvswitch_node();
  node.link_types[0].in_network_reduction = true;
  node.network.in_network_reduction = true;
  return node;
}

std::vector<Machine> machines() {
  std::vector<Machine> result;
  result.push_back({"a PCIe switch", Topology(cluster_of(pcie_switch_node(8)))});
  result.push_back({"two NVSwitch nodes", Topology(cluster_of(reducing_node(), 2))});
  result.push_back({"a cube mesh", Topology(cluster_of(dgx1_node()))});
  result.push_back({"four nodes with two cards", Topology(cluster_of(two_card_node(), 4))});
  return result;
}

/// A row of the table on all GPUs of a machine; nothing where the hardware has no switches that add up.
std::optional<LoweredCollective> lower_row(const AlgorithmRow& row, Bytes size, const Topology& topology,
                                           int servers = 4) {
  CollectiveCall call;
  call.operation = row.operation;
  call.algorithm = row.algorithm;
  call.size = size;
  std::vector<int> ranks(static_cast<std::size_t>(topology.gpus()));
  std::iota(ranks.begin(), ranks.end(), 0);
  call.groups = {ranks};
  call.servers = servers;
  try {
    return lower(call, topology, Calibration{});
  } catch (const ImpossiblePlan& error) {
    if (std::string(error.what()).find("in_network needs") == std::string::npos) throw;
    return std::nullopt;
  }
}

double time_of(const LoweredCollective& lowered, const Topology& topology, Fidelity fidelity,
               const std::vector<Flow>& background = {}) {
  GraphMaker make(topology);
  if (!background.empty()) make.communicate(make.stream(), flows_at_once(0.0_s, background));
  const TaskId task = make.communicate(make.stream(), lowered);
  return simulate(make.graph(), topology, fidelity).finish[static_cast<std::size_t>(task)].value();
}

}  // namespace

TEST_CASE("steps and flows equal the closed form when nothing else moves") {
  // Steps have no barrier between the repetitions of a phase. Where the messages of a repetition are of different
  // sizes, ranks drift apart, once, by up to one message: in the double tree on eight ranks, ranks 1 and 2 are
  // neighbours in both trees and exchange twice the bytes. 11 repetitions of four messages' time then end one message's
  // time late, 1/70 of the whole.
  const auto tolerance = [](const AlgorithmRow& row, Fidelity fidelity) {
    return row.algorithm == SyncAlgorithm::double_tree && fidelity == Fidelity::steps ? 0.016 : 0.01;
  };
  for (const Machine& machine : machines()) {
    for (const AlgorithmRow& row : algorithm_table()) {
      for (const Bytes size : {1.0_KB, 1.0_GB}) {
        const auto lowered = lower_row(row, size, machine.topology);
        if (!lowered) continue;
        const double expected = uncontended_time(*lowered, machine.topology).value();
        for (const Fidelity fidelity : {Fidelity::flows, Fidelity::steps}) {
          const double found = time_of(*lowered, machine.topology, fidelity);
          if (std::abs(found / expected - 1.0) > tolerance(row, fidelity)) {
            FAIL_CHECK(fmt::format("{} operation {}, {} B on {}, {}: {} s, not {} s", name(row.algorithm),
                                   static_cast<int>(row.operation), size.value(), machine.name,
                                   fidelity == Fidelity::flows ? "flows" : "steps", found, expected));
          }
        }
      }
    }
  }
}

TEST_CASE("servers spread unevenly over sockets: the busiest link is a bound that fair sharing does not quite reach") {
  // Three servers on two sockets of a DGX-1: of the six messages through a switch's uplink two or four cross to the
  // other socket over a link of 20 GB/s, where fair sharing holds them back while the others get through; afterwards
  // the uplink is not full. Closed form and flows let all messages of a phase advance in proportion.
  const Topology topology(cluster_of(dgx1_node()));
  for (const SyncAlgorithm algorithm :
       {SyncAlgorithm::parameter_server, SyncAlgorithm::hierarchical_parameter_server}) {
    const auto lowered = lower_row({algorithm, CollectiveOperation::all_reduce}, 100.0_MB, topology, 3);
    const double bound = uncontended_time(*lowered, topology).value();
    CHECK(time_of(*lowered, topology, Fidelity::flows) == Approx(bound).epsilon(1e-6));
    const double fair = time_of(*lowered, topology, Fidelity::steps);
    CHECK(fair > 1.01 * bound);
    CHECK(fair < 1.15 * bound);
  }
}
