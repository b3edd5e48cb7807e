// Properties that every simulation has, on random graphs.
#include <bit>

#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/graph/critical_path.hpp"
#include "tests/sim/graphs.hpp"

using namespace foretrain;
using namespace foretrain::test_graphs;

namespace {

using Random = std::mt19937;

Seconds random_time(Random& random) { return Seconds(std::uniform_real_distribution(0.0, 2e-3)(random)); }
Bytes random_size(Random& random) { return Bytes(std::uniform_real_distribution(1e5, 3e7)(random)); }

std::vector<TaskId> random_predecessors(Random& random, TaskId task) {
  std::vector<TaskId> after;
  for (TaskId before = std::max(0, task - 8); before < task; ++before) {
    if (random() % 6 == 0) after.push_back(before);
  }
  return after;
}

/// A ring over some of the GPUs first … first + count - 1, in random order.
LoweredCollective random_ring(Random& random, int first, int count) {
  std::vector<EndpointId> ranks;
  for (int rank = first; rank < first + count; ++rank) ranks.push_back(rank);
  std::ranges::shuffle(ranks, random);
  ranks.resize(2 + random() % (ranks.size() - 1));
  return ring(ranks, random_size(random), Seconds(1e-6 * static_cast<double>(random() % 10)));
}

/// Computation on three streams and rings on `communication_streams` others.
TaskGraph random_graph(Random& random, const Topology& topology, int communication_streams) {
  GraphMaker make(topology);
  std::vector<ResourceId> streams;
  for (int i = 0; i < 3 + communication_streams; ++i) streams.push_back(make.stream());
  for (TaskId task = 0; task < 30; ++task) {
    const std::vector<TaskId> after = random_predecessors(random, task);
    const ResourceId stream = streams[random() % streams.size()];
    if (stream < 3) {
      make.compute(stream, random_time(random), after);
    } else {
      make.communicate(stream, random_ring(random, 0, topology.gpus()), after);
    }
  }
  return make.graph();
}

bool same_bits(const Execution& a, const Execution& b) {
  const auto same = [](Seconds x, Seconds y) {
    return std::bit_cast<std::uint64_t>(x.value()) == std::bit_cast<std::uint64_t>(y.value());
  };
  return std::ranges::equal(a.start, b.start, same) && std::ranges::equal(a.finish, b.finish, same);
}

/// Every task after its predecessors and after the task before it on its resource.
bool in_order(const TaskGraph& graph, const Execution& execution) {
  std::vector<Seconds> resource_free(graph.resources().size());
  for (std::size_t task = 0; task < graph.tasks().size(); ++task) {
    Seconds& free = resource_free[static_cast<std::size_t>(graph.tasks()[task].resource)];
    if (execution.start[task] < free || execution.finish[task] < execution.start[task]) return false;
    free = execution.finish[task];
    for (const TaskId next : graph.successors(static_cast<TaskId>(task))) {
      if (execution.start[static_cast<std::size_t>(next)] < execution.finish[task]) return false;
    }
  }
  return true;
}

const Topology& two_nodes() {
  static const Topology topology(test_nodes::cluster_of(test_nodes::nvswitch_node(), 2));
  return topology;
}

}  // namespace

TEST_CASE("property: without contention a simulation equals an uncontended run") {
  // All communication on one stream: no two collectives at a time.
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    const TaskGraph graph = random_graph(random, two_nodes(), 1);
    const double uncontended = run(graph).makespan.value();
    CHECK(simulate(graph, two_nodes(), Fidelity::flows).makespan.value() == Approx(uncontended).epsilon(1e-9));
    CHECK(simulate(graph, two_nodes(), Fidelity::steps).makespan.value() == Approx(uncontended).epsilon(0.01));
  }
}

TEST_CASE("property: no simulation beats the critical path, and two runs give the same bits") {
  Random random(3);
  bool contention = false;
  for (int round = 0; round < 100; ++round) {
    const TaskGraph graph = random_graph(random, two_nodes(), 3);
    for (const Fidelity fidelity : {Fidelity::flows, Fidelity::steps}) {
      const Execution execution = simulate(graph, two_nodes(), fidelity);
      CHECK(execution.makespan.value() >= foretrain::test::critical_path(graph).value() * (1.0 - 1e-9));
      CHECK(in_order(graph, execution));
      CHECK(same_bits(execution, simulate(graph, two_nodes(), fidelity)));
      contention = contention || execution.makespan > 1.01 * run(graph).makespan;
    }
  }
  CHECK(contention);  // or the graphs would have shown nothing
}

TEST_CASE("property: traffic elsewhere changes nothing") {
  // Two streams of rings meet within node 1 while one stream of rings runs within node 0.
  Random random(4);
  for (int round = 0; round < 20; ++round) {
    GraphMaker make(two_nodes());
    const ResourceId undisturbed = make.stream(), one = make.stream(), other = make.stream();
    for (int i = 0; i < 5; ++i) {
      make.communicate(undisturbed, random_ring(random, 0, 8));
      make.communicate(one, random_ring(random, 8, 8));
      make.communicate(other, random_ring(random, 8, 8));
    }
    const TaskGraph graph = make.graph();
    const Execution uncontended = run(graph);
    const Execution execution = simulate(graph, two_nodes(), Fidelity::flows);
    bool disturbed = false;
    for (std::size_t task = 0; task < graph.tasks().size(); ++task) {
      if (task % 3 > 0) {
        disturbed = disturbed || execution.finish[task] > 1.01 * uncontended.finish[task];
      } else {
        CHECK(execution.finish[task].value() == Approx(uncontended.finish[task].value()).epsilon(1e-9));
      }
    }
    CHECK(disturbed);
  }
}
