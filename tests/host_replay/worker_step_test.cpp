// A process's tasks of a step, in the order that they wait for each other, and the moments of all processes.
#include "validate/host_replay/worker_step.hpp"

#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "model/base/files.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Two ranks: the first computes, sends on a second stream, and computes meanwhile; the other receives and computes.
WorkerTask two_ranks(const ScratchFolder& folder) {
  WorkerTask task;
  task.ranks = 2;
  task.warmup = 1;
  task.folder = folder.path();
  task.steps = {{{0, 0.002, -1, {}}, {1, 0.0, 0, {0}}, {0, 0.004, -1, {0}}, {0, 0.001, -1, {1, 2}}},
                {{1, 0.0, 0, {}}, {0, 0.001, -1, {0}}}};
  return task;
}

}  // namespace

TEST_CASE("a step's tasks begin when those that they wait for are done, on the clock of all ranks", "[host]") {
  const ScratchFolder folder;
  const WorkerTask task = two_ranks(folder);
  for (int step = 0; step < 4; ++step) {
    std::atomic<bool> sent{false};
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        StepRunner runner(task, rank, [&, rank](const StepTask&) {
          if (rank == 0) sent = true;
          while (!sent) std::this_thread::yield();
        });
        runner.run();
        runner.write();
      });
    }
    for (std::thread& rank : ranks) rank.join();
    const std::vector<std::vector<TaskSpan>> spans = read_spans(folder.path(), 2);
    REQUIRE(spans.size() == 2);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      REQUIRE(spans[rank].size() == task.steps[rank].size());
      for (std::size_t i = 0; i < spans[rank].size(); ++i) {
        CHECK(spans[rank][i].end >= spans[rank][i].start + task.steps[rank][i].seconds * 0.999);
        for (const int before : task.steps[rank][i].after) {
          CHECK(spans[rank][i].start >= spans[rank][static_cast<std::size_t>(before)].end);
        }
      }
    }
    // What is received ends after what is sent began, which waited for 2 ms of the other rank's.
    CHECK(spans[1][0].end >= spans[0][1].start);
    CHECK(spans[1][0].end >= 0.002);
    CHECK(std::min(spans[0][0].start, spans[1][0].start) == 0.0);
  }
}

TEST_CASE("moments are medians of the steps after warm-up, each from its own beginning", "[host]") {
  const ScratchFolder folder;
  WorkerTask task = two_ranks(folder);
  task.warmup = 2;
  task.steps = {{{0, 0.0, 0, {}}}, {{0, 0.0, 0, {}}}};
  int step = 0;
  StepRunner first(task, 0, [](const StepTask&) {});
  StepRunner second(task, 1, [&](const StepTask&) { usleep(step < task.warmup ? 0 : 20'000); });
  for (; step < 4; ++step) {
    first.run();
    second.run();
  }
  first.write();
  second.write();
  const std::vector<std::vector<TaskSpan>> spans = read_spans(folder.path(), 2);
  CHECK(spans[0][0].start == 0.0);
  CHECK(spans[1][0].start >= spans[0][0].end);
  CHECK(spans[1][0].end >= 0.02);
  CHECK(read_spans(folder.path(), 3).back().empty());
}

TEST_CASE("a stream that fails ends the step, whatever waits for it", "[host]") {
  const ScratchFolder folder;
  const WorkerTask task = two_ranks(folder);
  StepRunner runner(task, 0, [](const StepTask&) { throw std::runtime_error("the other is gone"); });
  CHECK_THROWS_WITH(runner.run(), "the other is gone");
}
