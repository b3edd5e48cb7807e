#include "model/tasks/front_end.hpp"
#include "model/graph/execution.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Ten kernels of `kernel` on one stream, each launched in 1 us, 2 us on its way, with room for `depth` launches.
Execution ten_kernels(Seconds kernel, double depth) {
  HostConstants constants;
  constants.launch_latency_us = 2.0;
  constants.queue_launches = depth;
  TaskGraph::Builder builder;
  const ResourceId thread = builder.add_resource({"cpu", Resource::Kind::host_thread});
  const ResourceId stream = builder.add_resource({"gpu", Resource::Kind::device_stream});
  const BlockId dispatch = builder.add_block({"dispatch", Category::host, 1.0_us});
  const BlockId work = builder.add_block({"kernel", Category::compute, kernel});
  FrontEnd front_end(builder, constants);
  for (int i = 0; i < 10; ++i) front_end.submit(thread, stream, {dispatch, std::array{work}, {}, {}, i});
  return run(std::move(builder).build());
}

/// The i-th launch is three tasks: dispatch, on its way, kernel.
Seconds dispatched(const Execution& execution, std::size_t i) { return execution.finish[3 * i]; }

}  // namespace

TEST_CASE("the front end runs ahead of a slower device") {
  // Kernels of 5 us: the first starts after 1 + 2 us, the others follow without a gap: 3 + 50 us. The host is free
  // after 10 launches of 1 us.
  const Execution execution = ten_kernels(5.0_us, 1024);
  CHECK(execution.makespan.value() == Approx(53e-6));
  CHECK(dispatched(execution, 9).value() == Approx(10e-6));
}

TEST_CASE("a faster device waits for the front end") {
  // Kernels of 0.5 us: the last one is launched at 10 us, arrives 2 us later and takes 0.5 us.
  CHECK(ten_kernels(0.5_us, 1024).makespan.value() == Approx(12.5e-6));
}

TEST_CASE("a full queue stops the front end until a kernel has ended") {
  // Room for four launches: the fifth is dispatched when the first kernel has ended, 3 + 5 us, so it is handed over at
  // 9 us; the tenth when the sixth has ended: 3 + 6 · 5 + 1 = 34 us. The device never notices.
  const Execution execution = ten_kernels(5.0_us, 4);
  CHECK(dispatched(execution, 3).value() == Approx(4e-6));
  CHECK(dispatched(execution, 4).value() == Approx(9e-6));
  CHECK(dispatched(execution, 9).value() == Approx(34e-6));
  CHECK(execution.makespan.value() == Approx(53e-6));
  // Room for one: every launch waits for the kernel before it, 1 + 2 + 5 us each.
  CHECK(ten_kernels(5.0_us, 1).makespan.value() == Approx(80e-6));
}
