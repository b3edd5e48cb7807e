// Lengths of equal phases of pipelines, and messages in trees and to servers.
#include "model/collectives/algorithm.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Chunks that move in a phase, by who sends them to whom.
std::map<std::pair<int, int>, int> moved_in(const Phase& phase) {
  std::map<std::pair<int, int>, int> result;
  for (const Transfer& transfer : phase) result[{transfer.source, transfer.destination}] += transfer.chunks;
  return result;
}

}  // namespace

TEST_CASE("a pipeline's phases of full use are one run, from the first to the last") {
  using enum CollectiveOperation;
  for (const Algorithm* algorithm : {&double_tree_algorithm, &ring_algorithm}) {
    for (const CollectiveOperation operation : {all_reduce, broadcast, reduce}) {
      // A ring's all-reduce is all in full use.
      if (!algorithm->has(operation) || (algorithm == &ring_algorithm && operation == all_reduce)) continue;
      const Schedule schedule = algorithm->schedule(operation, 8, 1);
      int runs = 0;
      for (int phase = 0; phase < schedule.phases; phase += schedule.phase_run(phase).length) {
        const int run = schedule.phase_run(phase).length;
        if (run == 1) continue;
        ++runs;
        CHECK(moved_in(schedule.phase(phase)) != moved_in(schedule.phase(phase - 1)));
        CHECK(moved_in(schedule.phase(phase)) != moved_in(schedule.phase(phase + run)));
      }
      CHECK(runs == 1);
    }
  }
}

TEST_CASE("a tree is a heap: each rank has two below it, whose numbers are twice its own and one or two more") {
  const Schedule schedule = tree_algorithm.schedule(CollectiveOperation::reduce, 12, 1);
  for (int phase = 0; phase < schedule.phases; ++phase) {
    for (const Transfer& transfer : schedule.phase(phase)) {
      const int first = 2 * transfer.destination + 1;
      CHECK((transfer.source == first || transfer.source == first + 1));
    }
  }
}

TEST_CASE("machines push each server its own part, and pull it from there") {
  // Six ranks on machines of two, four servers: a rank has half of the message, two servers' parts.
  ScheduleShape shape(4);
  shape.ranks_per_node = 2;
  const Schedule schedule = hierarchical_parameter_server_algorithm.schedule(CollectiveOperation::all_reduce, 6, shape);
  std::map<int, int> pushed, pulled;
  for (int phase = 0; phase < schedule.phases; ++phase) {
    for (const Transfer& transfer : schedule.phase(phase)) {
      if (transfer.destination >= 6) pushed[transfer.destination] += transfer.chunks;
      if (transfer.source >= 6) pulled[transfer.source] += transfer.chunks;
    }
  }
  REQUIRE(pushed.size() == 4);
  for (const auto& [server, chunks] : pushed) CHECK(chunks == 3 * schedule.chunks / 4);
  CHECK(pulled == pushed);
}

TEST_CASE(
    "of a stretch's phases the one that moves most stands for all, in a chain that fills as in one that empties") {
  // 300 hops: ramps of 299 phases, in steps of 4.
  const Schedule chain = ring_algorithm.schedule(CollectiveOperation::broadcast, 301, 1);
  for (int phase = 0; phase < chain.phases;) {
    const Schedule::PhaseRun stretch = chain.phase_run(phase);
    const std::size_t most = chain.phase(stretch.representative).size();
    for (int other = phase; other < phase + stretch.length; ++other) REQUIRE(chain.phase(other).size() <= most);
    if (most < 300) REQUIRE(stretch.length <= 4);
    phase += stretch.length;
  }
  // Of exchanges over distances of 1,024 to 1,499 the last one goes farthest; beyond, partners are distinguished no
  // more.
  const Schedule pairs = pairwise_algorithm.schedule(CollectiveOperation::reduce_scatter, 1500, 1);
  for (int phase = 0; phase < pairs.phases; phase += pairs.phase_run(phase).length) {
    CHECK(pairs.phase_run(phase).representative == phase + pairs.phase_run(phase).length - 1);
  }
  CHECK(pairs.phase_run(1).length == 2);  // distances 2 and 3
  CHECK(pairs.phase_run(1023).length == 1500 - 1024);
}
