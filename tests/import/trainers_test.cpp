// Configurations and packed files at their limits, and what users state of assumptions. Small ones: rows/trainers.txt.

#include "model/scenario/load/load.hpp"
#include "reports/result/trace.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

TEST_CASE("torchtitan's degrees multiply to 10⁹ GPUs at most") {
  const std::vector<std::string> keys = {"tensor_parallel_degree", "pipeline_parallel_degree",
                                         "context_parallel_degree", "data_parallel_replicate_degree",
                                         "data_parallel_shard_degree"};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string& second = keys[(i + 1) % keys.size()];
    CHECK_THROWS_WITH(import_text("torchtitan", "[parallelism]\n" + keys[i] + " = 40_000\n" + second + " = 40_000\n"),
                      Catch::Contains("degrees for more than 10⁹ GPUs"));
  }
}

TEST_CASE("what a scenario states of an assumption is no assumption any more") {
  const std::string text = import_text("accelerate", "num_processes: 8\n");
  const auto assumed = [&](const std::vector<std::string>& overrides) {
    const Scenario scenario = load_scenario_text(text, "imported.yaml", overrides);
    return fmt::format("{}", fmt::join(scenario.assumed, "\n"));
  };
  CHECK_THAT(assumed({}), Catch::Contains("assumed: cluster.node: dgx-h100: the file does not name the machines"));
  CHECK_THAT(assumed({"cluster.node=dgx-a100-80gb"}), !Catch::Contains("cluster.node"));
  CHECK_THAT(assumed({"cluster.node.gpus=8"}), Catch::Contains("cluster.node: dgx-h100"));  // still that machine
}

TEST_CASE("text for configurations has at most 4 MB") {
  std::string most = "distributed_type: \"NO\"\n#";
  while (most.size() < 4'000'000) most += most.size() % 1000 == 0 ? "\n#" : "x";
  most.resize(4'000'000);
  CHECK_NOTHROW(import_text("accelerate", most));
  CHECK_THROWS_WITH(import_text("accelerate", most + "x"), Catch::Contains("4000001 bytes; at most 4 MB of text"));
}

TEST_CASE("packed files of many pieces, and several behind one another, are unpacked to their end") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& bytes) {
    return read_imported_file(folder.write("packed.gz", bytes).string());
  };
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += std::to_string(i * 7919 % 10'007) + "\n";
  CHECK(read(gzip(text)) == text);
  CHECK(read(gzip("a") + gzip(text) + gzip("b")) == "a" + text + "b");
  CHECK(read(gzip("")).empty());
  CHECK(read(text) == text);
  const std::string half = gzip(text).substr(0, 1000), one = gzip("a");
  CHECK_THROWS_WITH(read(half), Catch::Contains("broken gzip data behind byte 1000"));
  CHECK_THROWS_WITH(read(one + half),
                    Catch::Contains(fmt::format("broken gzip data behind byte {}", one.size() + 1000)));
}

TEST_CASE("a configuration of which nothing is known is refused with what was looked for") {
  for (const auto& [tool, text] : {std::pair("torchtitan", ""),
                                   {"torchtitan", "[table]\nkey = 1\n"},
                                   {"deepspeed", "{}"},
                                   {"accelerate", "key: 1\n"}}) {
    INFO(tool << ": " << text);
    CHECK_THROWS_WITH(import_text(tool, text),
                      Catch::Contains(fmt::format("none of {}'s settings; its keys, as ", tool)));
  }
}
