// `foretrain replay` before anything is run: these need neither root nor a network.

#include "model/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "validate/replay/graph_text.hpp"
#include "validate/replay/result.hpp"

namespace foretrain::test {

TEST_CASE("A replay needs something to run, and says what would be right") {
  const TemporaryFolder folder;
  CHECK(run_program({"replay"}).status == 2);
  CHECK(run_program({"replay", "replay-ring-4", "--table", folder.file("out.csv")}).status == 2);
  CHECK(run_program({"replay", "replay-ring-4", "-o", folder.file("other.json", "{}")}).status == 2);
  CHECK(run_program({"replay", "replay-ring-4", "parallel-matmul-one-gpu"}).status == 2);
  const std::string cases = folder.file("cases.csv", "case,base,replay.timeline\na,replay-hosts,many\n");
  check_refused({"replay", "--cases", cases}, {"replay.timeline"});
  // Rows of others are left as they are where they were measured.
  const std::string others = folder.file("others.csv", "case,base,replay.executor\na,replay-hosts,gloo\n");
  check_refused({"replay", "--cases", others}, {"others.csv:2:", "replay.executor", "own"});
}

TEST_CASE("Without a GPU a replay on GPUs says so, and how to go on") {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);  // whatever this machine has
  const FilterResult result = run_program({"replay", "parallel-matmul-one-gpu"});
  unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK(result.status == 2);
  CHECK(result.output.empty());
  check_has(result.errors, {"--export parallel-matmul-one-gpu.graph", "on_gpu.sh", "one rank per host"});
  // Errors that hold for any GPU machine come first.
  check_refused({"replay", "sync-ring-4", "--set", "workload.collective.algorithm=halving_doubling"},
                {"plan.sync.algorithm"});
}

TEST_CASE("A task graph is exported, the same bytes each time, or nothing is written") {
  const TemporaryFolder folder;
  const std::string path = folder.file("products.graph");
  output_of({"replay", "front-end-matmul-synchronised", "--export", path});
  const std::string text = read_text_file(path);
  CHECK_THAT(text, Catch::StartsWith("foretrain-graph 1\ngraph name=products "));
  CHECK_THAT(text, Catch::Contains("kernel kind=matmul"));
  output_of({"replay", "front-end-matmul-synchronised", "--export", path});
  CHECK(read_text_file(path) == text);
  check_refused({"replay", "front-end-item-once", "gpt3-175b-1024-a100", "--export", folder.file("")},
                {"cluster.nodes"});
  CHECK(!std::filesystem::exists(folder.file("front-end-item-once.graph")));
  CHECK(run_program({"replay", "front-end-item-once", "execution-mlp", "--export", path}).status == 2);
}

TEST_CASE("The graphs that GPU machines run are those that are exported now") {
  // Predicted times apart: they move with constants. Export them again with
  //   foretrain replay --cases validate/cuda/graphs/graphs.csv --export validate/cuda/graphs
  const TemporaryFolder folder;
  const std::string committed = FORETRAIN_SOURCE_DIR "/validate/cuda/graphs";
  output_of({"replay", "--cases", committed + "/graphs.csv", "--export", folder.file("")});
  int graphs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(committed)) {
    if (entry.path().extension() != ".graph") continue;
    INFO(entry.path());
    const std::string fresh = folder.file(entry.path().filename().string());
    REQUIRE(std::filesystem::exists(fresh));
    const replay::Graph graph = replay::read_graph(entry.path().string());
    CHECK(identity_of(graph) == identity_of(replay::read_graph(fresh)));
    CHECK(graph.gpus == 1);
    ++graphs;
  }
  std::size_t exports = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file(""))) exports += entry.is_regular_file();
  CHECK(graphs >= 12);
  CHECK(std::cmp_equal(graphs, exports));
}

TEST_CASE("Replays measured elsewhere are compared, and need a folder that holds some") {
  const TemporaryFolder folder;
  CHECK(run_program({"replay", "--from", folder.file("")}).status == 2);
  (void)folder.file("replay-a.json", "{}");
  check_refused({"replay", "--from", folder.file("")}, {"replay-a.json"});
}

TEST_CASE("A picture of replays needs measurements of hosts") {
  const TemporaryFolder folder;
  const std::string picture = folder.file("out.svg");
  CHECK(run_program({"plot", "replay", folder.file("missing.json"), "-o", picture}).status == 2);
  const std::string empty = folder.file("no.json", R"({"kind": "something else"})");
  CHECK_THAT(run_program({"plot", "replay", empty, "-o", picture}).errors, Catch::Contains("foretrain replay -o"));
}

}  // namespace foretrain::test
