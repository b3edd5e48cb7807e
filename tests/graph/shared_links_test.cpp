#include "model/graph/shared_links.hpp"

#include "model/graph/execution.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Two groups' collectives over one link: `moving` alone, twice that together, after `latency`. The second one's host
/// lets it begin `later`.
Execution two_groups(Seconds latency, Seconds moving, Seconds later) {
  TaskGraph::Builder builder;
  const LoweredCollective flows{"test", {{latency, {{0, 1, Bytes(1.0)}}, 1}}};
  const auto block = [&](int number) {
    const LinkShare links{.among = 0,
                          .number = number,
                          .shares = true,
                          .latency = latency,
                          .together = latency + moving * 2.0,
                          .meetings = {{1 - number, moving}}};
    return builder.add_block({"collective", Category::communication, latency + moving, flows, {}, nullptr, {}, links});
  };
  const auto stream = [&] { return builder.add_resource({"stream", Resource::Kind::communication_stream}); };
  const BlockId wait = builder.add_block({"wait", Category::compute, later});
  builder.add_task({block(0), stream()});
  const TaskId waited = builder.add_task({wait, stream()});
  builder.add_task({block(1), stream()}, std::array{waited});
  return run(std::move(builder).build());
}

}  // namespace

TEST_CASE("groups that begin together take what they take together, to the last bit") {
  const Seconds latency(0.1), moving(0.7);
  const Execution execution = two_groups(latency, moving, Seconds(0.0));
  CHECK(execution.finish[0] == latency + moving * 2.0);
  CHECK(execution.finish[2] == latency + moving * 2.0);
}

TEST_CASE("groups share a link while both move") {
  // The first has moved a half when the second comes, moves its other half at half speed, 0.5 + 1 = 1.5 s; by then the
  // second has moved a half of its own, and has the link to itself for the other: 1.5 + 0.5 = 2 s, as long as it takes
  // the link to carry both.
  const Execution execution = two_groups(Seconds(0.0), 1.0_s, 0.5_s);
  CHECK(execution.finish[0].value() == Approx(1.5));
  CHECK(execution.finish[2].value() == Approx(2.0));
}

TEST_CASE("who still waits for its latency leaves the link to others") {
  // Latencies of 0.5 s: the first moves from 0.5 s, alone until the second's latency is over at 1 s, then at half speed
  // until 2 s; the second is done at 2.5 s. One after the other, neither knows of the other: 1.5 s and 1 + 1.5 s.
  const Execution execution = two_groups(0.5_s, 1.0_s, 0.5_s);
  CHECK(execution.finish[0].value() == Approx(2.0));
  CHECK(execution.finish[2].value() == Approx(2.5));
  const Execution apart = two_groups(0.5_s, 1.0_s, 1.0_s);
  CHECK(apart.finish[0] == 1.5_s);
  CHECK(apart.finish[2] == 2.5_s);
}
