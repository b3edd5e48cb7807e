// Results of a replay, as foretrain-gpu writes them.
#include "validate/replay/result.hpp"

#include "tests/catch.hpp"

using namespace foretrain;
using namespace foretrain::replay;

namespace {

Graph one_kernel() {
  Graph graph;
  graph.name = "one";
  graph.resources = {{"gpu0", Resource::Kind::stream, 0}};
  graph.blocks = {
      {"pass", "compute", 6e-6, {KernelWork{"a", "traffic", {}, 3, 2.0_us}, CopyWork{"gpu0", "cpu", 8.0_B, false}}}};
  graph.tasks = {{0, 0, {}, 0.0, 6e-6}, {0, 0, {}, 6e-6, 12e-6}};
  return graph;
}

}  // namespace

TEST_CASE("a graph that could not be run says why, and names the machine where there is one", "[replay]") {
  const std::string failed = to_json(one_kernel(), "failed", "out of memory", "");
  CHECK_THAT(failed, Catch::Contains(R"("version":1,"status":"failed")"));
  CHECK_THAT(failed, Catch::Contains(R"("notes":["out of memory"])"));
  CHECK_THAT(failed, !Catch::Contains("machine"));
  CHECK_THAT(to_json(one_kernel(), "failed", "", "{}"), Catch::Contains(R"("machine":{})"));
}

TEST_CASE("work is identified by block and number, with the prediction of all its launches and how many tasks do it",
          "[replay]") {
  Result result;
  result.steps = {2.0, 1.0, 3.0};
  result.work = {{0, 0, 7e-6}, {0, 1, 5e-6}};
  const std::string text = to_json(one_kernel(), result, "");
  CHECK_THAT(text, Catch::Contains(R"("median":2)"));
  // Three launches of 2 us each; of a copy nothing is predicted.
  CHECK_THAT(text, Catch::Contains(R"("work_number":0,"tasks":2,"block":"pass","name":"a","predicted_s":6e-06)"));
  CHECK_THAT(text, Catch::Contains(R"("work_number":1,"tasks":2,"block":"pass","name":"copy","predicted_s":0,)"));
}

TEST_CASE("a graph keeps its identity where predictions change, and loses it with its work", "[replay]") {
  Graph better = one_kernel();
  better.predicted = 1.0;
  better.hardware = "another";
  better.tasks[1].end = 1.0;
  better.blocks[0].predicted = 1.0;
  std::get<KernelWork>(better.blocks[0].work[0]).predicted = 9.0_us;
  CHECK(identity_of(better) == identity_of(one_kernel()));
  std::get<KernelWork>(better.blocks[0].work[0]).count = 4;
  CHECK(identity_of(better) != identity_of(one_kernel()));
}
