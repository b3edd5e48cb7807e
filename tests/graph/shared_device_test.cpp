#include "model/graph/shared_device.hpp"
#include "model/graph/execution.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

struct Streams {
  TaskGraph::Builder builder;
  ResourceId stream() {
    return builder.add_resource({"stream", Resource::Kind::device_stream, 0, Resource::Order::added, 0});
  }
  BlockId kernel(Seconds alone, double multiprocessors) {
    return builder.add_block({"kernel", Category::compute, alone, {}, {multiprocessors, 0.0}});
  }
};

}  // namespace

TEST_CASE("kernels of two streams share what does not suffice for both") {
  // a needs 0.75 of the device for 4 s, b 0.75 for 2 s: together 1.5, so both run at 2/3. b ends after 3 s; a has then
  // done 2 s of its work and goes on alone: 3 + 2 = 5 s.
  Streams s;
  const ResourceId one = s.stream(), two = s.stream();
  const TaskId a = s.builder.add_task({s.kernel(4.0_s, 0.75), one});
  const TaskId b = s.builder.add_task({s.kernel(2.0_s, 0.75), two});
  const TaskGraph graph = std::move(s.builder).build();
  const Execution execution = run(graph);
  CHECK(execution.finish[static_cast<std::size_t>(b)].value() == Approx(3.0));
  CHECK(execution.finish[static_cast<std::size_t>(a)].value() == Approx(5.0));
}

TEST_CASE("a kernel that meets another later has done its work so far at full speed") {
  // a alone for 1 s; then b comes (after a task of 1 s elsewhere), both need all of the device: half speed. b (1 s)
  // ends at 3 s, a has done 1 + 1 of its 3 s and ends at 4 s.
  Streams s;
  const ResourceId one = s.stream(), two = s.stream();
  const ResourceId host = s.builder.add_resource({"host", Resource::Kind::host_thread});
  const TaskId a = s.builder.add_task({s.kernel(3.0_s, 1.0), one});
  const TaskId wait = s.builder.add_task({s.kernel(1.0_s, 0.0), host});
  const TaskId b = s.builder.add_task({s.kernel(1.0_s, 1.0), two}, std::array{wait});
  const Execution execution = run(std::move(s.builder).build());
  CHECK(execution.start[static_cast<std::size_t>(b)] == 1.0_s);
  CHECK(execution.finish[static_cast<std::size_t>(b)].value() == Approx(3.0));
  CHECK(execution.finish[static_cast<std::size_t>(a)].value() == Approx(4.0));
}

TEST_CASE("kernels for which there is enough take their time alone to the last bit") {
  Streams s;
  const Seconds alone(0.1);
  const BlockId small = s.kernel(alone, 0.3);
  for (int i = 0; i < 3; ++i) s.builder.add_task({small, s.stream()});
  const Execution execution = run(std::move(s.builder).build());
  for (const Seconds finish : execution.finish) CHECK(finish == alone);
}
