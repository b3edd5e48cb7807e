// How long NCCL may take, with a clock that the test moves.
#include "validate/cuda/collective/watchdog.hpp"

#include <atomic>
#include <chrono>

#include "tests/catch.hpp"

using namespace foretrain::gpu;

TEST_CASE("a limit is due when its seconds have passed, and not before", "[collective][watchdog]") {
  Limit limit({.give_up = 60, .abort = 65, .exit = 90});
  CHECK(limit.due(1e9) == Limit::Due::nothing);  // nothing has begun
  limit.begin(100.0);
  CHECK(limit.due(159.9) == Limit::Due::nothing);
  CHECK(limit.due(160.0) == Limit::Due::give_up);
  CHECK(limit.due(164.9) == Limit::Due::give_up);
  CHECK(limit.due(165.0) == Limit::Due::abort);
  CHECK(limit.due(190.0) == Limit::Due::exit);
  limit.end();
  CHECK(limit.due(1e9) == Limit::Due::nothing);
}

namespace {

/// Waits for another thread, at most ten seconds.
template <typename Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

TEST_CASE("whoever polls is told; whoever is stuck is aborted, then ended", "[collective][watchdog]") {
  std::atomic<double> time{0.0};
  std::atomic<int> aborts{0};
  std::atomic<int> exits{0};
  std::string said;
  Watchdog dog({.abort = [&] { ++aborts; },
                .exit =
                    [&](const std::string& message) {
                      said = message;
                      ++exits;
                    }},
               {.give_up = 60, .abort = 65, .exit = 90}, [&] { return time.load(); });
  {
    const Watchdog::Guard guard(dog, "all_reduce on 4 GPUs");
    time = 59.0;
    CHECK_FALSE(dog.overdue());
    {
      // Work inside guarded work does not begin the minute anew.
      const Watchdog::Guard inner(dog, "something in it");
    }
    time = 61.0;
    CHECK(dog.overdue());
    CHECK(dog.message() == "NCCL did not finish within 60 s: all_reduce on 4 GPUs; see NCCL_DEBUG=INFO");
    CHECK(aborts.load() == 0);
    time = 66.0;
    CHECK(soon([&] { return aborts.load() == 1; }));
    time = 91.0;
    CHECK(soon([&] { return exits.load() == 1; }));
    CHECK(said == dog.message());
  }
  CHECK(aborts.load() == 1);  // once is enough
}

TEST_CASE("work that ends in time is left alone", "[collective][watchdog]") {
  std::atomic<double> time{0.0};
  std::atomic<int> aborts{0};
  Watchdog dog({.abort = [&] { ++aborts; }, .exit = [](const std::string&) {}}, {}, [&] { return time.load(); });
  for (int i = 0; i < 3; ++i) {
    const Watchdog::Guard guard(dog, "quick work");
    time = time + 10.0;
  }
  // The time between pieces of work, however long, counts for none of them.
  time = 1e6;
  std::this_thread::sleep_for(std::chrono::milliseconds(250));  // more than two looks of the watchdog
  CHECK_FALSE(dog.overdue());
  CHECK(aborts.load() == 0);
}
