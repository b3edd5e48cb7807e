// The algorithms of the table: both fidelities against the closed form.

#include "sim/executor.hpp"
#include "tests/catch.hpp"
#include "tests/sim/graphs.hpp"

using namespace foretrain;
using namespace foretrain::test_graphs;

TEST_CASE("steps and flows equal the isolated time when nothing else moves") {
  const SyncAlgorithm algorithms[] = {SyncAlgorithm::naive, SyncAlgorithm::tree, SyncAlgorithm::ring,
                                      SyncAlgorithm::parameter_server};
  const Topology machines[] = {Topology(test_nodes::cluster_of(test_nodes::pcie_switch_node(8))),
                               Topology(test_nodes::cluster_of(test_nodes::nvswitch_node(), 2))};
  for (const Topology& topology : machines) {
    for (const SyncAlgorithm algorithm : algorithms) {
      const AlgorithmRow* row = find_algorithm(algorithm, CollectiveOperation::all_reduce);
      REQUIRE(row != nullptr);
      GraphMaker make(topology);
      make.communicate(make.stream(), scheduled(row->build(topology.gpus(), 1), 160.0_MB, 5.0_us, topology));
      const TaskGraph graph = make.graph();
      const double isolated = execute_isolated(graph).makespan.value();
      INFO(row->name << " on " << topology.gpus() << " GPUs");
      CHECK(simulate(graph, topology, Fidelity::flows).makespan.value() == Approx(isolated).epsilon(0.01));
      CHECK(simulate(graph, topology, Fidelity::steps).makespan.value() == Approx(isolated).epsilon(0.01));
    }
  }
}

TEST_CASE("under background traffic a ring of long flows stays close to its steps") {
  // GPU 0's link carries 50 ms of other traffic beside a ring that alone takes 2·7/8·160 MB / 16 GB/s = 17.5 ms. The
  // ring's flow over that link gets half of it for all its life: both fidelities say 35 ms.
  const Topology topology(test_nodes::cluster_of(test_nodes::pcie_switch_node(8)));
  GraphMaker make(topology);
  make.communicate(make.stream(), flows_at_once(0.0_s, {{0, 3, 800.0_MB}}));
  make.communicate(make.stream(), ring({0, 1, 2, 3, 4, 5, 6, 7}, 160.0_MB, 0.0_s));
  const TaskGraph graph = make.graph();
  CHECK(simulate(graph, topology, Fidelity::flows).finish[1].value() == Approx(0.035).epsilon(0.01));
  CHECK(simulate(graph, topology, Fidelity::steps).finish[1].value() == Approx(0.035).epsilon(0.01));
}
