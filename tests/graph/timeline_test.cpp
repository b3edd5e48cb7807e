// Drawing of a task: its bars, and their dependencies.
#include "model/graph/timeline.hpp"

#include "model/graph/execution.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// "resource/name from-to" of each bar.
std::vector<std::string> bars_of(const TaskGraph& graph, const Execution& execution) {
  std::vector<std::string> reported;
  for (const TimelineEntry& entry : timeline_of(graph, execution)) {
    const auto whole = [](Seconds time) { return std::to_string(static_cast<int>(time.value() + 0.5)); };
    reported.push_back(entry.resource + "/" + entry.name + " " + whole(entry.start) + "-" +
                       whole(entry.start + entry.duration));
  }
  return reported;
}

/// A pass of 100 s on "gpu0 compute" that begins at 50 s: 60 s of kernels, of which collectives hide behind 10 and
/// copies behind 5; 20 s of collectives and 15 of copies that show; 5 in which the device waits for launches.
TaskGraph pass() {
  TaskGraph::Builder builder;
  const ResourceId compute = builder.add_resource({"gpu0 compute", Resource::Kind::device_stream, 3});
  builder.add_task({builder.add_block({"before", Category::compute, Seconds(50.0)}), compute});
  Block block{"forward", Category::compute, Seconds(100.0)};
  block.inside = {.exposed = Seconds(20.0),
                  .hidden = Seconds(10.0),
                  .exposed_copies = Seconds(15.0),
                  .hidden_copies = Seconds(5.0),
                  .host = Seconds(5.0)};
  builder.add_task({builder.add_block(std::move(block)), compute, 4}, std::array{TaskId{0}});
  return std::move(builder).build();
}

}  // namespace

TEST_CASE("Of a pass with collectives inside, kernels come first, then collectives, copies and what launches take") {
  const TaskGraph graph = pass();
  const Execution execution = run(graph);
  // Collectives that hide lie beside the kernels' end, copies that hide beside the collectives'.
  CHECK(bars_of(graph, execution) == std::vector<std::string>{"gpu0 compute/before 0-50", "gpu0 compute/forward 50-110",
                                                              "gpu0 compute/dispatch 145-150",
                                                              "gpu0 inside layers/collectives inside layers 100-130",
                                                              "gpu0 copies/copies of offloading 125-145"});
  const std::vector<TimelineEntry> entries = timeline_of(graph, execution);
  CHECK(entries[1].micro_batch == 4);
  CHECK(entries[1].rank_class == 3);
  CHECK(entries[1].category == "compute");
  CHECK(entries[2].category == "host");
  CHECK(entries[3].category == "communication");
}

TEST_CASE("Bars name the last bars of other resources that they waited for, through tasks that take no time") {
  TaskGraph::Builder builder;
  const ResourceId gpu = builder.add_resource({"gpu", Resource::Kind::device_stream, 0});
  const ResourceId other = builder.add_resource({"other", Resource::Kind::device_stream, 1});
  const BlockId work = builder.add_block({"work", Category::compute, Seconds(1.0)});
  const BlockId nothing = builder.add_block({"nothing", Category::compute, Seconds(0.0)});
  const TaskId first = builder.add_task({work, gpu});
  const TaskId second = builder.add_task({work, gpu}, std::array{first});
  const TaskId gate = builder.add_task({nothing, gpu}, std::array{second});
  builder.add_task({work, other}, std::array{gate});
  const TaskGraph graph = std::move(builder).build();
  const std::vector<TimelineEntry> entries = timeline_of(graph, run(graph));
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].after.empty());
  CHECK(entries[1].after.empty());  // its own resource's order says it
  CHECK(entries[2].after == std::vector<std::size_t>{1});
}
