// Replays of task graphs beside their predictions. Every number here is made up for the tests; none was measured.
#include "reports/measured/measured_graph.hpp"

#include "model/base/error.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "validate/replay/result.hpp"

using namespace foretrain;

namespace {

/// Two products on a GPU and a copy of their result; the pass has two operators.
replay::Graph synthetic_graph() {
  replay::Graph graph;
  graph.name = "synthetic";
  graph.scenario = "made up for a test";
  graph.hardware = "h200-x1";
  graph.fidelity = "flows";
  graph.predicted = 3e-3;
  graph.resources = {{"gpu0", replay::Resource::Kind::stream, 0}, {"gpu0:d2h", replay::Resource::Kind::copies, 0}};
  graph.blocks = {{"forward",
                   "compute",
                   1e-3,
                   {KernelWork{"linear", "matmul", {{"m", "1"}}, 1, 800.0_us},
                    KernelWork{"relu", "traffic", {{"read", "1"}}, 2, 100.0_us}}},
                  {"copy", "communication", 1e-3, {CopyWork{"gpu0", "cpu", 1000.0_B, true}}}};
  graph.tasks = {{0, 0, {}, 0.0, 1e-3}, {0, 0, {}, 1e-3, 2e-3}, {1, 1, {1}, 2e-3, 3e-3}};
  return graph;
}

std::string synthetic_file() {
  replay::Result result;
  result.steps = {4e-3, 3.9e-3, 4.1e-3};
  result.tasks = {{0.0, 1.5e-3, 0.01, 1e-5}, {1.5e-3, 3e-3, 0.01, 1e-5}, {3e-3, 3.9e-3, 0.01, 2e-6}};
  result.work = {{0, 0, 1.3e-3}, {0, 1, 2e-4}};
  result.memory = 1e9;
  result.host_launch = 5e-5;
  result.notes = {"nothing was measured here"};
  return to_json(synthetic_graph(), result, R"({"gpus":[{"name":"Synthetic GPU"}],"driver":"0.0"})");
}

}  // namespace

TEST_CASE("a replay's file says what was predicted and measured, and which operators the prediction misses most",
          "[replay]") {
  const TemporaryFolder folder;
  const MeasuredGraph graph = read_measured_graph(folder.write("replay-synthetic.json", synthetic_file()).string());
  CHECK(graph.machine == "Synthetic GPU, driver 0.0");
  CHECK(graph.measured().value() == Approx(4e-3));
  CHECK(graph.error() == Approx(-0.25));  // 3 ms for 4 ms
  // Twice 0.8 ms for twice 1.3 ms; the copy 1 ms for 0.9 ms; the two launches of relu are as predicted.
  const std::vector<TaskError> worst = worst_tasks(graph, 3);
  REQUIRE(worst.size() == 3);
  CHECK(worst[0].name == "forward: linear");
  CHECK(worst[0].count == 2);
  CHECK(worst[0].off().value() == Approx(-1e-3));
  CHECK(worst[1].name == "copy on gpu0:d2h");
  CHECK(worst[2].off().value() == Approx(0.0).margin(1e-12));
  const std::string text = measured_graphs_text({graph});
  CHECK_THAT(text, Catch::Contains("-25.0 %") && Catch::Contains("forward: linear (x2): 1.60 ms predicted, 2.60 ms"));
  CHECK_THAT(text, Catch::Contains("predicted for h200-x1, run on Synthetic GPU"));
  CHECK_THAT(text, Catch::Contains("nothing was measured here"));
}

TEST_CASE("a graph that was run is predicted anew, unless it has changed since", "[replay]") {
  const TemporaryFolder folder;
  MeasuredGraph graph = read_measured_graph(folder.write("replay-synthetic.json", synthetic_file()).string());
  replay::Graph better = synthetic_graph();
  better.hardware = "a100-pcie-x1";
  better.predicted = 4.4e-3;
  better.tasks[1].end = 2.5e-3;
  std::get<KernelWork>(better.blocks[0].work[0]).predicted = Seconds(1.3e-3);
  predict_again(graph, better);
  CHECK(graph.error() == Approx(0.1));
  CHECK(graph.hardware == "a100-pcie-x1");
  CHECK(graph.tasks[1].predicted_end.value() == 2.5e-3);
  CHECK(graph.work[0].predicted.value() == 1.3e-3);
  CHECK(graph.work[1].predicted.value() == Approx(2e-4));  // two launches of 0.1 ms
  better.predicted = 9.9e-3;
  std::get<KernelWork>(better.blocks[0].work[0]).fields["m"] = "2";
  predict_again(graph, better);
  CHECK(graph.predicted.value() == 4.4e-3);
  CHECK_THAT(graph.notes.back(), Catch::Contains("has changed"));
}

TEST_CASE("the timeline has predicted and measured rows of each place beside each other", "[replay]") {
  const TemporaryFolder folder;
  const MeasuredGraph graph = read_measured_graph(folder.write("replay-synthetic.json", synthetic_file()).string());
  const TimelineFigure figure = measured_timeline(graph);
  std::vector<std::string> rows;
  for (const TimelineEntry& entry : figure.entries) {
    if (rows.empty() || rows.back() != entry.resource) rows.push_back(entry.resource);
  }
  CHECK(rows ==
        std::vector<std::string>{"gpu0, predicted", "gpu0, measured", "gpu0:d2h, predicted", "gpu0:d2h, measured"});
  CHECK(figure.entries[2].start.value() == 0.0);
  CHECK(figure.entries[2].duration.value() == Approx(1.5e-3));
  CHECK_THAT(to_svg(to_figure(figure)), Catch::Contains("made up for a test"));
}

TEST_CASE("graphs that could not be run are listed with the reason", "[replay]") {
  const TemporaryFolder folder;
  folder.write("replay-a.json", to_json(synthetic_graph(), "skipped", "it needs 2 GPUs; 1 are here", "{}"));
  folder.write("replay-b.json", synthetic_file());
  folder.write("machine.json", "{}");
  const std::vector<MeasuredGraph> graphs = read_measured_graphs(folder.path().string());
  REQUIRE(graphs.size() == 2);
  CHECK(graphs[0].steps.empty());
  const std::string text = measured_graphs_text(graphs);
  CHECK_THAT(text, Catch::Contains("Not run\n  synthetic: it needs 2 GPUs") && Catch::Contains("1 graphs:"));
}

TEST_CASE("a file that is no replay of a graph is refused by its name", "[replay]") {
  const TemporaryFolder folder;
  CHECK(!is_measured_graph("{}"));
  CHECK(!is_measured_graph("no JSON"));
  CHECK(is_measured_graph(synthetic_file()));
  const std::string steps = R"("values":[0.004,0.0039,0.0041])";
  std::string without = synthetic_file();
  without.replace(without.find(steps), steps.size(), R"("values":[])");
  int number = 0;
  for (const std::string& text : {std::string("{}"), std::string("["), without}) {
    const std::string path = folder.write("replay-" + std::to_string(number++) + ".json", text).string();
    CHECK_THROWS_WITH(read_measured_graph(path), Catch::Contains(path) && Catch::Contains("foretrain-gpu replay"));
  }
  const TemporaryFolder empty;
  CHECK_THROWS_AS(read_measured_graphs(empty.path().string()), UsageError);
}

TEST_CASE("a graph is known by what it does, not by what was predicted", "[replay]") {
  replay::Graph graph = synthetic_graph();
  const std::string identity = replay::identity_of(graph);
  graph.predicted = 1.0;
  graph.tasks[0].end = 0.5;
  graph.blocks[0].predicted = 2.0;
  CHECK(replay::identity_of(graph) == identity);
  graph.tasks[2].after = {0, 1};
  CHECK(replay::identity_of(graph) != identity);
}
