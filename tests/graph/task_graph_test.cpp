#include "model/graph/execution.hpp"

#include "model/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/graph/critical_path.hpp"

using namespace foretrain;

namespace {

BlockId add_fixed(TaskGraph::Builder& builder, Seconds duration) {
  return builder.add_block({"fixed", Category::compute, duration});
}

}  // namespace

TEST_CASE("a task must refer to what is there already") {
  TaskGraph::Builder builder;
  const BlockId block = add_fixed(builder, 1.0_s);
  const ResourceId stream = builder.add_resource({"gpu"});
  CHECK_THROWS_AS(builder.add_task({block + 1, stream}), InternalError);
  CHECK_THROWS_AS(builder.add_task({block, stream + 1}), InternalError);
  CHECK_THROWS_AS(builder.add_task({block, stream}, std::array{TaskId{0}}), InternalError);  // itself
  CHECK_THROWS_AS(builder.add_task({block, stream}, std::array{TaskId{-1}}), InternalError);
}

TEST_CASE("resources work in order, dependencies make tasks wait") {
  // Stream 1: a (2 s), c (1 s, after b). Stream 2: b (5 s), d (1 s, after a).
  // a 0–2, b 0–5, c waits for b: 5–6, d is ready at 2 but queues behind b: 5–6.
  TaskGraph::Builder builder;
  const BlockId one = add_fixed(builder, 1.0_s), two = add_fixed(builder, 2.0_s), five = add_fixed(builder, 5.0_s);
  const ResourceId stream1 = builder.add_resource({"1"}), stream2 = builder.add_resource({"2"});
  const TaskId a = builder.add_task({two, stream1});
  const TaskId b = builder.add_task({five, stream2});
  const TaskId c = builder.add_task({one, stream1}, std::array{b});
  const TaskId d = builder.add_task({one, stream2}, std::array{a});
  const TaskGraph graph = std::move(builder).build();
  const Execution execution = run(graph);

  CHECK(execution.finish[static_cast<std::size_t>(a)] == 2.0_s);
  CHECK(execution.start[static_cast<std::size_t>(c)] == 5.0_s);
  CHECK(execution.start[static_cast<std::size_t>(d)] == 5.0_s);
  CHECK(execution.makespan == 6.0_s);
  // Dependencies alone: b then c takes 5 + 1 s, a then d takes 2 + 1 s.
  CHECK(test::critical_path(graph) == 6.0_s);
}

TEST_CASE("an urgent queue takes the least priority first, and among equals the one that was ready first") {
  // All wait for 1 s elsewhere, then take 1 s each; their priorities are 3, 1, 2 and 1.
  TaskGraph::Builder builder;
  const BlockId second = add_fixed(builder, 1.0_s);
  const ResourceId elsewhere = builder.add_resource({"elsewhere"});
  const ResourceId queue = builder.add_resource({"queue", Resource::Kind::host_thread, 0, Resource::Order::urgent});
  const TaskId first = builder.add_task({second, elsewhere});
  std::vector<TaskId> tasks;
  for (const int priority : {3, 1, 2, 1})
    tasks.push_back(builder.add_task({second, queue, -1, priority}, std::array{first}));
  const Execution execution = run(std::move(builder).build());
  const auto start = [&](std::size_t i) { return execution.start[static_cast<std::size_t>(tasks[i])]; };
  // The first that is ready finds the queue idle, whatever its priority; then the least goes first.
  CHECK(start(0) == 1.0_s);
  CHECK(start(1) == 2.0_s);
  CHECK(start(3) == 3.0_s);
  CHECK(start(2) == 4.0_s);
}

TEST_CASE("property: critical path ≤ uncontended run ≤ everything one after another") {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    TaskGraph::Builder builder;
    std::array<BlockId, 4> blocks{};
    for (BlockId& block : blocks) block = add_fixed(builder, Seconds(std::uniform_real_distribution(0.0, 1.0)(random)));
    for (int i = 0; i < 3; ++i) builder.add_resource({"stream"});
    Seconds everything;
    for (TaskId task = 0; task < 30; ++task) {
      std::vector<TaskId> after;
      for (TaskId before = 0; before < task; ++before) {
        if (random() % 8 == 0) after.push_back(before);
      }
      builder.add_task({blocks[random() % 4], static_cast<ResourceId>(random() % 3)}, after);
    }
    const TaskGraph graph = std::move(builder).build();
    for (TaskId task = 0; task < 30; ++task) everything += graph.block_of(task).uncontended;
    const Execution execution = run(graph);
    CHECK(test::critical_path(graph) <= execution.makespan);
    CHECK(execution.makespan.value() <= Approx(everything.value()));
    for (TaskId task = 0; task < 30; ++task) {
      for (const TaskId next : graph.successors(task)) {
        CHECK(execution.start[static_cast<std::size_t>(next)] >= execution.finish[static_cast<std::size_t>(task)]);
      }
    }
  }
}

TEST_CASE("Tasks that start in a known order need no events, and get the loop's dates to the last bit") {
  // Random graphs on six streams; a third of the blocks move data, some of them in no time. A resource that chooses
  // its tasks makes events of them, also where it has none.
  const auto random_graph = [](unsigned seed, bool with_events) {
    std::mt19937 random(seed);
    TaskGraph::Builder builder;
    for (int i = 0; i < 12; ++i) {
      Block block{"block", Category::compute, Seconds(std::ldexp(random() % 1000 + 1, -30))};
      if (i % 3 == 0) block.flows = LoweredCollective{};
      builder.add_block(std::move(block));
    }
    for (int i = 0; i < 6; ++i) builder.add_resource({"stream"});
    for (TaskId task = 0; task < 200; ++task) {
      std::vector<TaskId> after;
      for (unsigned i = 0; task > 0 && i < random() % 4; ++i) after.push_back(static_cast<TaskId>(random() % task));
      builder.add_task({static_cast<BlockId>(random() % 12), static_cast<ResourceId>(random() % 6)}, after);
    }
    if (with_events) builder.add_resource({"unused", Resource::Kind::host_thread, 0, Resource::Order::urgent});
    return std::move(builder).build();
  };
  for (unsigned seed = 0; seed < 50; ++seed) {
    const TaskGraph graph = random_graph(seed, false), looped = random_graph(seed, true);
    for (const std::vector<BlockId>& free : {std::vector<BlockId>{}, {0, 6}}) {
      const Execution direct = run(graph, free), loop = run(looped, free);
      CHECK(direct.start == loop.start);
      CHECK(direct.finish == loop.finish);
      CHECK(direct.makespan == loop.makespan);
    }
  }
}

TEST_CASE("A graph with other blocks has the same tasks, which take other times") {
  TaskGraph::Builder builder;
  const BlockId block = add_fixed(builder, 1.0_s);
  const ResourceId stream = builder.add_resource({"gpu"});
  const TaskId first = builder.add_task({block, stream});
  builder.add_task({block, stream}, std::array{first});
  const TaskGraph graph = std::move(builder).build();
  const TaskGraph slower = graph.with_blocks({{"slower", Category::compute, 3.0_s}});
  CHECK(run(slower).makespan == 6.0_s);
  CHECK(slower.block_of(first).name == "slower");
  CHECK(run(graph).makespan == 2.0_s);
  CHECK_THROWS_AS(graph.with_blocks({}), InternalError);
}
