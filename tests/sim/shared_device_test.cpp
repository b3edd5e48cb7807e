// Streams that share a device, by both executors.
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/graph/critical_path.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;

namespace {

using Random = std::mt19937;

double share(Random& random) { return std::uniform_real_distribution(0.0, 1.0)(random); }

/// Kernels on four streams of one device and two of another, a host thread, launches on their way, dependencies at
/// random.
TaskGraph random_graph(Random& random) {
  TaskGraph::Builder builder;
  std::vector<ResourceId> resources;
  for (int i = 0; i < 6; ++i) {
    resources.push_back(
        builder.add_resource({"stream", Resource::Kind::device_stream, 0, Resource::Order::added, i < 4 ? 0 : 1}));
  }
  resources.push_back(builder.add_resource({"host", Resource::Kind::host_thread}));
  resources.push_back(builder.add_resource({"path", Resource::Kind::launch_path, 0, Resource::Order::at_once}));
  for (TaskId task = 0; task < 60; ++task) {
    const Seconds time(1e-3 * share(random));
    const BlockId block = builder.add_block({"task", Category::compute, time, {}, {share(random), share(random)}});
    std::vector<TaskId> after;
    for (TaskId before = std::max(0, task - 8); before < task; ++before) {
      if (random() % 8 == 0) after.push_back(before);
    }
    builder.add_task({block, resources[random() % resources.size()]}, after);
  }
  return std::move(builder).build();
}

}  // namespace

TEST_CASE("property: both executors share a device in the same way") {
  const Topology topology(test_nodes::cluster_of(test_nodes::nvswitch_node()));
  Random random(7);
  bool slowed = false;
  for (int round = 0; round < 50; ++round) {
    const TaskGraph graph = random_graph(random);
    const Execution uncontended = run(graph);
    const Execution simulated = simulate(graph, topology, Fidelity::flows);
    for (std::size_t task = 0; task < graph.tasks().size(); ++task) {
      CHECK(simulated.start[task].value() == Approx(uncontended.start[task].value()).epsilon(1e-12));
      CHECK(simulated.finish[task].value() == Approx(uncontended.finish[task].value()).epsilon(1e-12));
      const Seconds alone = graph.block_of(static_cast<TaskId>(task)).uncontended;
      const Seconds took = uncontended.finish[task] - uncontended.start[task];
      CHECK(took.value() >= alone.value() * (1.0 - 1e-9));  // company never makes a kernel faster
      slowed = slowed || took > 1.1 * alone;
    }
    CHECK(uncontended.makespan.value() >= foretrain::test::critical_path(graph).value() * (1.0 - 1e-9));
  }
  CHECK(slowed);  // or the graphs would have shown nothing
}

TEST_CASE("property: a full device is never idle while kernels wait") {
  // Kernels that need all of the device, on four streams from the start: in all they take the sum of their times,
  // however they share it.
  const Topology topology(test_nodes::cluster_of(test_nodes::nvswitch_node()));
  Random random(8);
  for (int round = 0; round < 20; ++round) {
    TaskGraph::Builder builder;
    Seconds sum;
    std::vector<ResourceId> streams;
    for (int i = 0; i < 4; ++i) {
      streams.push_back(builder.add_resource({"stream", Resource::Kind::device_stream, 0, Resource::Order::added, 0}));
    }
    for (int i = 0; i < 20; ++i) {
      const Seconds time(1e-3 * share(random));
      sum += time;
      const BlockId block = builder.add_block({"kernel", Category::compute, time, {}, {1.0, share(random)}});
      builder.add_task({block, streams[random() % streams.size()]});
    }
    const TaskGraph graph = std::move(builder).build();
    CHECK(run(graph).makespan.value() == Approx(sum.value()).epsilon(1e-9));
    CHECK(simulate(graph, topology, Fidelity::steps).makespan.value() == Approx(sum.value()).epsilon(1e-9));
  }
}
