// A process's tasks of a step, in the order that they wait for each other, and the moments of all processes.
#include <atomic>
#include <thread>

#include "tests/catch.hpp"
#include "validate/host_replay/replay.hpp"

using namespace foretrain;

namespace {

/// Two ranks: the first computes, sends on a second stream, and computes on; the other receives and computes.
const std::vector<std::vector<StepTask>> steps = {
    {{0, 0.002, -1, {}}, {1, 0.0, 0, {0}}, {0, 0.004, -1, {0}}, {0, 0.001, -1, {1, 2}}},
    {{1, 0.0, 0, {}}, {0, 0.001, -1, {0}}}};

}  // namespace

TEST_CASE("a step's tasks begin when those that they wait for are done, on the clock of all ranks", "[host]") {
  for (int step = 0; step < 4; ++step) {
    std::atomic<bool> sent{false};
    std::vector<WorkerTimes> times(2);
    {
      std::vector<std::jthread> ranks;
      for (std::size_t rank = 0; rank < 2; ++rank) {
        ranks.emplace_back([&, rank] {
          times[rank].spans = {run_step(steps[rank], [&](const StepTask&) {
            if (rank == 0) sent = true;
            while (!sent) std::this_thread::yield();
          })};
        });
      }
    }
    const std::vector<std::vector<TaskSpan>> spans = medians_of(times);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      REQUIRE(spans[rank].size() == steps[rank].size());
      for (std::size_t i = 0; i < spans[rank].size(); ++i) {
        CHECK(spans[rank][i].end >= spans[rank][i].start + steps[rank][i].seconds * 0.999);
        for (const int before : steps[rank][i].after) {
          CHECK(spans[rank][i].start >= spans[rank][static_cast<std::size_t>(before)].end);
        }
      }
    }
    // A receive ends after its send began, which waited for 2 ms of the other rank's.
    CHECK(spans[1][0].end >= spans[0][1].start);
    CHECK(spans[1][0].end >= 0.002);
    CHECK(std::min(spans[0][0].start, spans[1][0].start) == 0.0);
  }
}

TEST_CASE("moments are medians of the repetitions, each from its own beginning on any process", "[host]") {
  // The second process begins 1, 2 and 4 s after the first, which begins at 10, 20 and 30 s; the third has no tasks.
  std::vector<WorkerTimes> times(3);
  times[0].spans = {{{10, 11}}, {{20, 21}}, {{30, 33}}};
  times[1].spans = {{{11, 15}}, {{22, 23}}, {{34, 36}}};
  const std::vector<std::vector<TaskSpan>> spans = medians_of(times);
  CHECK(spans[0][0].start == 0.0);
  CHECK(spans[0][0].end == 1.0);  // of 1, 1 and 3
  CHECK(spans[1][0].start == 2.0);
  CHECK(spans[1][0].end == 5.0);  // of 5, 3 and 6
  CHECK(spans[2].empty());
}

TEST_CASE("a stream that fails ends the step, whatever waits for it", "[host]") {
  const auto carry = [](const StepTask&) { throw std::runtime_error("the other is gone"); };
  CHECK_THROWS_WITH(run_step(steps[0], carry), "the other is gone");
}
