// The file between the two programs: it comes back as it was, and what is wrong with it is said with its line.
#include "validate/replay/graph_text.hpp"

#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/complaint.hpp"

using namespace foretrain;
using namespace foretrain::replay;
using HostAction = HostWork::Action;

namespace {

Graph small_graph() {
  Graph graph;
  graph.name = "front-end-item-once";
  graph.scenario = "products, \"read\" once \\ at the end";
  graph.hardware = "h200-x1";
  graph.fidelity = "flows";
  graph.gpus = 2;
  graph.predicted = 0.1;
  graph.resources = {{"cpu", Resource::Kind::host, 0},
                     {"launches", Resource::Kind::path, 0},
                     {"gpu1", Resource::Kind::stream, 1},
                     {"gpu1:d2h", Resource::Kind::copies, 1}};
  graph.blocks = {{"dispatch", "host", 7e-6, {HostWork{HostAction::dispatch, 7.0_us, {}, 1, false}}},
                  {"launch", "host", 0.0, {HostWork{HostAction::launch}}},
                  {"linear 1 + relu",
                   "compute",
                   1.0 / 3.0,
                   {KernelWork{"linear 1", "matmul", {{"m", "64"}, {"k", "64"}, {"n", "64"}}, 1, 10.0_us},
                    KernelWork{"relu", "traffic", {{"read", "4"}, {"written", "4"}}, 3, 1.0_us}}},
                  {"read", "communication", 1e-5, {CopyWork{"gpu1", "cpu", 8.0_B, false}}},
                  {"sum", "communication", 1e-3, {CollectiveWork{"server_cpu", 100.0_B, 2, 1, 2}}}};
  graph.tasks = {{0, 0, {}, 0.0, 7e-6},
                 {1, 1, {0}, 7e-6, 8e-6},
                 {2, 2, {1}, 8e-6, 0.3},
                 {3, 3, {0, 2}, 0.3, 0.4},
                 {4, 2, {}, 0.4, 0.5}};
  return graph;
}

std::string error_of(const std::string& text) {
  return test::complaint_of<GraphFileError>([&] { (void)parse_graph(text, "x.graph"); });
}

/// The text with one piece replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = to_text(small_graph());
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a graph comes back from its file as it was, and gives the same bytes again", "[replay]") {
  const std::string text = to_text(small_graph());
  const Graph back = parse_graph(text, "x.graph");
  CHECK(back == small_graph());
  CHECK(to_text(back) == text);
  Graph long_list = small_graph();
  while (long_list.tasks.size() < 13) long_list.tasks.push_back({2, 2, {}, 0.5, 0.6});
  long_list.tasks.push_back({2, 2, {0, 1, 12}, 0.6, 0.7});
  CHECK(parse_graph(to_text(long_list), "x.graph") == long_list);
}

TEST_CASE("what is wrong with a graph's file is said with its line and what would be right", "[replay]") {
  struct Row {
    std::string from, to, says;
  };
  const std::vector<Row> rows = {
      {"foretrain-graph 1", "foretrain-graph 2", "x.graph:1: foretrain-graph: version 2; version 1"},
      {"foretrain-graph 1", "hello", "x.graph:1: hello: this is no exported task graph"},
      {"gpus=2", "gpus=0", "x.graph:2: graph: gpus=0; an integer from 1"},
      {"gpus=2", "gpus=two", "x.graph:2: graph: gpus=two"},
      {"gpus=2", "gpus=99999999999999999999", "x.graph:2: graph: gpus=9999"},
      {"gpus=2 ", "", "x.graph:2: graph: no gpus"},
      {"gpus=2", "gpus=2 gpus=2", "x.graph:2: graph: the key gpus twice"},
      {"gpus=2", "gpus=2 nodes=1", "x.graph:2: graph: unknown key nodes"},
      {"name=front-end-item-once", "name=../r02", "x.graph:2: graph: name=../r02"},
      {"predicted=0.1", "predicted=nan", "x.graph:2: graph: predicted=nan"},
      {"predicted=0.1", "predicted=-1", "x.graph:2: graph: predicted=-1"},
      {"predicted=0.1", "predicted=1e999", "x.graph:2: graph: predicted=1e999"},
      {"at the end\"", "at the end", "a quotation that does not end"},
      {"at the end\"", "at the end\"x", "a quotation that goes on"},
      {"kind=host", "kind=thread", "x.graph:3: resource: kind=thread; stream | copies | host | path"},
      {"resource 1", "resource 2", "x.graph:4: resource: number 2; 1"},
      {"resource 2", "resource 1", "x.graph:5: resource: number 1; 2"},
      {"device=1", "device=2", "x.graph:5: resource: device=2; an integer from 0 to 1"},
      {"action=launch", "action=fly", "action=fly"},
      {"category=compute", "category=work", "category=work"},
      {"from=gpu1", "from=gpu2", "from=gpu2; cpu, or gpu0 to gpu1"},
      {"from=gpu1", "from=disk", "from=disk"},
      {"from=gpu1", "from=gpu", "from=gpu;"},
      {"bytes=8", "bytes=-8", "bytes=-8"},
      {"ranks=2", "ranks=1", "ranks=1"},
      {"method=server_cpu", "method=mail", "method=mail"},
      {"count=3", "count=0", "count=0"},
      {"count=3", "count=2147483647", "count=2147483647; an integer from 1 to 2147483646"},
      {"task 1", "task 7", "task: number 7; 1"},
      {"after=0,2", "after=0,3", "after=0,3; numbers from 0 to 2"},
      {"after=0,2", "after=0,,2", "after=0,,2"},
      {"after=0,2", "after=", "after="},
      {"start=0 end", "start=1 end", "an end before its start"},
      {"block=4", "block=5", "block=5; an integer from 0 to 4"},
      {"resource=3", "resource=4", "resource=4; an integer from 0 to 3"},
      {"block=3 resource=3", "block=2 resource=3", "resource gpu1:d2h cannot do block 2"},
      {"block=2 resource=2", "block=2 resource=0", "resource cpu cannot do block 2"},
      {"task 0", "walk 0", "walk: unknown line"},
      {"end lines", "copy from=cpu to=gpu0 bytes=1 pinned=true\nend lines", "not behind a block"},
      {"end lines=", "end lines=9", "end: line"},
      {"\nend", "\n\nend", "end: line"},
  };
  for (const Row& row : rows) {
    INFO(row.from << " → " << row.to);
    CHECK_THAT(error_of(changed(row.from, row.to)), Catch::Contains(row.says) && Catch::StartsWith("x.graph:"));
  }
  CHECK_THAT(error_of(to_text(small_graph()) + "more\n"), Catch::Contains("something behind the end"));
  CHECK(error_of("foretrain-graph 1\n") == "x.graph:2: the file ends here; graph name=…");
  CHECK_THAT(error_of(""), Catch::Contains("x.graph:1: the file ends here"));
  CHECK_THROWS_WITH(read_graph("/nowhere/x.graph"), Catch::Contains("/nowhere/x.graph: cannot be read"));
  CHECK(error_of(changed("count=3", "count=2147483646")) == "accepted");
}

TEST_CASE("a file that was cut off anywhere is refused", "[replay]") {
  const std::string text = to_text(small_graph());
  for (std::size_t size = 0; size < text.size(); ++size) REQUIRE(error_of(text.substr(0, size)) != "accepted");
}

TEST_CASE("a file in which anything was changed is refused, or reads as a graph that can be written", "[replay]") {
  std::mt19937 random(1);
  const std::string text = to_text(small_graph());
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int i = 0; i < 3000; ++i) {
    std::string changed = text;
    switch (below(3)) {
      case 0:
        changed[below(text.size())] = static_cast<char>(below(256));
        break;
      case 1:
        changed.insert(below(text.size()), text.substr(below(text.size()), below(20)));
        break;
      default:
        changed.erase(below(text.size()), below(20));
    }
    try {
      const Graph graph = parse_graph(changed, "x.graph");
      REQUIRE(parse_graph(to_text(graph), "y.graph").tasks == graph.tasks);
    } catch (const GraphFileError&) {
    }
  }
}

TEST_CASE("names of files keep letters, digits, dots and dashes", "[replay]") {
  CHECK(file_name_of("mlp 3 (eager)") == "mlp-3-eager");
  CHECK(file_name_of("gpt3-1.3b") == "gpt3-1.3b");
  CHECK(file_name_of("../..").empty());
}

TEST_CASE("a graph is read from its file, and is neither replicated nor captured unless it says so", "[replay]") {
  const TemporaryFolder folder;
  const std::string text = to_text(small_graph());
  CHECK_THAT(text, Catch::Contains(" replicated=false capture=false "));
  CHECK(read_graph(folder.write("x.graph", text).string()) == small_graph());
}
