#include "model/planning/plan_bound.hpp"

#include "model/base/session.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// A pipeline of two stages with two chunks each, whose passes take 1 s forward and 2 s backward, and 2.5 s in pairs.
Seconds bound(PipelineSchedule schedule) {
  PassTimes times;
  const std::size_t positions = schedule == PipelineSchedule::interleaved ? 4 : 2;
  PerPass<Seconds> chunk;
  chunk[PassKind::forward] = Seconds(1.0);
  chunk[PassKind::backward] = Seconds(2.0);
  chunk[PassKind::paired] = Seconds(2.5);
  times.passes.assign(positions, chunk);
  return pipeline_bound({schedule, 2, schedule == PipelineSchedule::interleaved ? 2 : 1, 8}, {times});
}

}  // namespace

TEST_CASE("How many passes run in pairs depends on the schedule, whichever was asked about before") {
  const auto alone = [](PipelineSchedule schedule) {
    Session fresh;
    const SessionScope scope(fresh);
    return bound(schedule);
  };
  const Seconds in_pairs = alone(PipelineSchedule::dualpipe), without = alone(PipelineSchedule::interleaved);
  Session shared;
  const SessionScope scope(shared);
  CHECK(bound(PipelineSchedule::interleaved) == without);
  CHECK(bound(PipelineSchedule::dualpipe) == in_pairs);
}
