// Breakdowns of steps, by hand.
#include "model/training/outcome/breakdown.hpp"

#include "tests/catch.hpp"
#include "tests/training/built_step.hpp"
#include "tests/training/small_step.hpp"

using namespace foretrain;
using test::uncontended_use;

namespace {

/// One forward pass of 2 s and one backward pass of 1 s, whose gradients are sent in no time.
Step two_passes() { return test::data_parallel_step(1, 2.0, 1.0, 0.0, false); }

}  // namespace

TEST_CASE("each part of a step is counted once, in the part of the breakdown that it belongs to") {
  // Forward 2 s and backward 1 s, with 0.1 s of dispatch that shows; the update takes 0.5 s and waits 0.2 s for its
  // launches. The loader holds the step up for 1 s, of which the device decodes 0.4; 0.3 s go by once a step.
  Step step = two_passes();
  step.rank_classes[0].chunks[0].passes[PassKind::forward].time.host = Seconds(0.1);
  step.rank_classes[0].optimizer.compute = Seconds(0.5);
  step.rank_classes[0].optimizer.host = Seconds(0.2);
  step.loader_serial = Seconds(1.0);
  step.loader_device = Seconds(0.4);
  step.once_per_step = Seconds(0.3);
  const Breakdown breakdown = uncontended_use(step).breakdown;
  CHECK(breakdown.total().value() == Approx(5.1));
  CHECK(breakdown.compute.value() == Approx(3.4));
  CHECK(breakdown.host_overhead.value() == Approx(0.6));
  CHECK(breakdown.optimizer.value() == Approx(0.5));
  CHECK(breakdown.data_stall.value() == Approx(0.6));
  CHECK(breakdown.pipeline_bubble.value() == 0.0);
  CHECK(breakdown.exposed_communication.value() == 0.0);
  // A loader that keeps pace no more stalls the step for what is missing as well.
  CHECK(uncontended_use(step, Seconds(6.0)).breakdown.data_stall.value() == Approx(0.6 + 0.9));
}

TEST_CASE("collectives inside a pass are those that show and those that hide, copies are shown apart") {
  // Of 2 s of kernels 0.5 hide collectives and 0.25 copies; 1 s of collectives and 0.75 s of copies show.
  Step step = two_passes();
  TimeBreakdown& forward = step.rank_classes[0].chunks[0].passes[PassKind::forward].time;
  forward.exposed = Seconds(1.0);
  forward.exposed_copies = Seconds(0.75);
  forward.hidden = Seconds(0.5);
  forward.hidden_copies = Seconds(0.25);
  const auto [breakdown, table, inside] = uncontended_use(step);
  CHECK(breakdown.exposed_communication.value() == Approx(1.75));
  CHECK(table.at(inside_layers).total.value() == Approx(1.5));
  CHECK(table.at(inside_layers).exposed.value() == Approx(1.0));
  CHECK(table.at(copies_of_offloading).total.value() == Approx(1.0));
  CHECK(table.at(copies_of_offloading).exposed.value() == Approx(0.75));
}
