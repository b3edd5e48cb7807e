// Stragglers, in graphs of a few tasks whose moments are stated.
#include "reports/explain/link_use.hpp"
#include "tests/catch.hpp"

namespace foretrain {
namespace {

/// Ranks with a compute stream each and a stream for what they send, and tasks with the moments in which they run.
class Ranks {
 public:
  explicit Ranks(int number) {
    for (int lane = 0; lane < number; ++lane) {
      builder_.add_resource({fmt::format("stage {} compute", lane), Resource::Kind::device_stream, lane});
      builder_.add_resource({fmt::format("stage {} network", lane), Resource::Kind::communication_stream, lane});
    }
  }

  TaskId computes(int lane, double start, double finish, const std::vector<TaskId>& after = {}) {
    return add(2 * lane, Category::compute, start, finish, after);
  }
  TaskId sends(int lane, double start, double finish, const std::vector<TaskId>& after = {}) {
    return add(2 * lane + 1, Category::communication, start, finish, after);
  }

  /// "stage 0 <- stage 1: 2 s", a line each.
  std::string waits() && {
    std::string lines;
    for (const Wait& wait : waits_of(std::move(builder_).build(), execution_)) {
      lines += fmt::format("{} <- {}: {} s\n", wait.waiting, wait.late, wait.time.value());
    }
    return lines;
  }

 private:
  TaskId add(ResourceId resource, Category category, double start, double finish, const std::vector<TaskId>& after) {
    const BlockId block = builder_.add_block({"work", category, Seconds(finish - start)});
    execution_.start.emplace_back(start);
    execution_.finish.emplace_back(finish);
    return builder_.add_task({block, resource}, after);
  }

  TaskGraph::Builder builder_;
  Execution execution_;
};

}  // namespace

TEST_CASE("A wait lasts from where a rank rests until what it needs was computed, without the transfer") {
  Ranks ranks(2);
  const TaskId late = ranks.computes(0, 0.0, 2.0);
  const TaskId own = ranks.computes(1, 0.0, 0.5);
  ranks.computes(1, 3.0, 4.0, {own, ranks.sends(0, 2.0, 3.0, {late})});
  CHECK(std::move(ranks).waits() == "stage 1 <- stage 0: 1.5 s\n");
}

TEST_CASE("Nobody waits for what is done before it rests, for itself, or for what no rank computes") {
  Ranks busy(2);
  const TaskId early = busy.computes(0, 0.0, 2.0);
  const TaskId longer = busy.computes(1, 0.0, 2.0);
  const TaskId sent = busy.sends(0, 2.0, 3.0, {early});
  busy.computes(1, 3.0, 4.0, {longer, sent});
  CHECK(std::move(busy).waits().empty());
  Ranks alone(1);
  const TaskId first = alone.computes(0, 0.0, 2.0);
  alone.computes(0, 3.0, 4.0, {alone.sends(0, 2.0, 3.0, {first})});
  CHECK(std::move(alone).waits().empty());
  Ranks idle(2);  // what was sent waited for nothing
  idle.computes(1, 3.0, 4.0, {idle.sends(0, 0.0, 3.0)});
  CHECK(std::move(idle).waits().empty());
}

TEST_CASE("A transfer that stands in a queue waits for what holds up the one before it") {
  const auto waits = [](double late_end) {
    Ranks ranks(3);
    const TaskId early = ranks.computes(0, 0.0, 1.0);
    const TaskId late = ranks.computes(1, 0.0, late_end);
    ranks.sends(0, 4.0, 5.0, {late});  // by the first rank's stream, for somebody else
    const TaskId queued = ranks.sends(0, 5.0, 6.0, {early});
    ranks.computes(2, 6.0, 7.0, {queued});
    return std::move(ranks).waits();
  };
  CHECK(waits(4.0) == "stage 2 <- stage 1: 4 s\n");
  // A task without a time has no place in a queue: it is what it waits for.
  Ranks marks(3);
  const TaskId early = marks.computes(0, 0.0, 1.0);
  const TaskId late = marks.computes(1, 0.0, 4.0);
  marks.sends(0, 4.0, 5.0, {late});
  marks.computes(2, 5.0, 6.0, {marks.sends(0, 5.0, 5.0, {early})});
  CHECK(std::move(marks).waits() == "stage 2 <- stage 0: 1 s\n");
}

TEST_CASE("Of causes that end together the first is reported, of a queue's and a task's own the task's") {
  Ranks ranks(3);
  const TaskId first = ranks.computes(0, 0.0, 2.0);
  const TaskId second = ranks.computes(1, 0.0, 2.0);
  ranks.computes(2, 2.0, 3.0, {second, first});
  CHECK(std::move(ranks).waits() == "stage 2 <- stage 0: 2 s\n");
  Ranks queue(3);
  const TaskId needed = queue.computes(1, 0.0, 2.0);
  queue.sends(0, 1.0, 2.0, {queue.computes(0, 0.0, 1.0)});
  queue.computes(2, 3.0, 4.0, {queue.sends(0, 2.0, 3.0, {needed})});
  CHECK(std::move(queue).waits() == "stage 2 <- stage 1: 2 s\n");
}

TEST_CASE("Waits of the same two ranks are added up, the longest stand first") {
  Ranks ranks(3);
  const TaskId a = ranks.computes(0, 0.0, 1.0);
  const TaskId b = ranks.computes(0, 1.0, 4.0);
  const TaskId c = ranks.computes(1, 1.0, 2.0, {a});
  ranks.computes(1, 4.0, 5.0, {b, c});
  ranks.computes(2, 2.0, 3.0, {c});
  CHECK(std::move(ranks).waits() == "stage 1 <- stage 0: 3 s\nstage 2 <- stage 1: 2 s\n");
}

}  // namespace foretrain
