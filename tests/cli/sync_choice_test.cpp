#include "model/base/csv.hpp"
#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/vary.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

namespace {

/// Four machines of eight GPUs, with a batch that suits two of them as well.
constexpr const char* four_machines = R"(name: four machines
cluster: { node: dgx-a100-80gb, nodes: 4 }
workload:
  train:
    model: gpt2
    global_batch_per_gpu: 8
    micro_batch: 8
    precision: bf16
    optimizer: adamw
plan:
  sync: { algorithm: parameter_server, servers: 2, placement: dedicated }
)";

std::vector<Case> rows_of(const std::vector<std::string>& variations) {
  const Combinations all("base", {}, parse_variations(variations));
  std::vector<Case> rows;
  for (std::size_t i = 0; i < all.size(); ++i) rows.push_back(all.at(i));
  return rows;
}

std::string overrides_of(const Case& row) {
  std::string text;
  for (const Override& change : row.overrides) text += change.key + "=" + change.value + " ";
  return text;
}

std::vector<std::vector<std::string>> cells_of(const std::string& path, const std::vector<std::string>& columns) {
  const CsvTable table = parse_csv(read_text_file(path), path);
  std::vector<std::vector<std::string>> rows;
  for (const CsvRow& row : table.rows) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (const std::string& column : columns) {
      for (std::size_t i = 0; i < table.header.size(); ++i) {
        if (table.header[i].text == column) cells.push_back(row[i].text);
      }
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("A value of plan.sync stands for algorithm, servers and placement") {
  const std::vector<Case> rows = rows_of({"plan.sync=ring,servers(8),servers(8, dedicated)"});
  REQUIRE(rows.size() == 3);
  CHECK(overrides_of(rows[0]) == "plan.sync.algorithm=ring ");
  CHECK(overrides_of(rows[1]) == "plan.sync.algorithm=parameter_server plan.sync.servers=8 ");
  CHECK(overrides_of(rows[2]) ==
        "plan.sync.algorithm=parameter_server plan.sync.servers=8 plan.sync.placement=dedicated ");
  // A mapping is what it was: all of the key's value.
  const std::vector<Case> whole = rows_of({"plan.sync={algorithm: ring}"});
  CHECK(overrides_of(whole[0]) == "plan.sync={algorithm: ring} ");
}

TEST_CASE("Servers stand for those of a collective beside its algorithm") {
  const std::vector<Case> rows = rows_of({"workload.collective.algorithm=ring,servers(2,gpu)"});
  CHECK(overrides_of(rows[1]) ==
        "workload.collective.algorithm=parameter_server workload.collective.servers=2 "
        "workload.collective.placement=gpu ");
}

TEST_CASE("Ways of synchronising that are none are refused") {
  for (const char* value : {"rong", "servers(0)", "servers(two)", "servers()", "servers(2,nowhere)",
                            "servers(2,cpu,added)", "servers(2,dedicated,addled)", "servers(2,dedicated,added,1)"}) {
    INFO(value);
    CHECK_THROWS_AS(sync_choice("plan.sync", value), UsageError);
  }
  CHECK_FALSE(sync_choice("plan.tensor", "ring"));
}

TEST_CASE("Ways of synchronising and values of keys have words") {
  const Combinations all("gpt2-xl-dgx-a100", {},
                         parse_variations({"plan.sync=ring,servers(1),servers(8,cpu),servers(8,dedicated,added)",
                                           "plan.tensor=4", "plan.execution=cuda_graph"}));
  CHECK(all.words(0) == "ring, tensor-parallel GPUs: 4, cuda graph");
  CHECK(all.words(0, 2) == "cuda graph");
  CHECK_THAT(all.words(1), Catch::StartsWith("1 server,"));
  CHECK_THAT(all.words(2), Catch::StartsWith("8 servers on CPUs,"));
  CHECK_THAT(all.words(3), Catch::StartsWith("8 dedicated servers, added,"));
}

TEST_CASE("Keys of servers beside another algorithm do not count, and such rows are one") {
  const Combinations all("base", {},
                         parse_variations({"plan.sync.algorithm=ring,parameter_server", "plan.sync.servers=4,8"}));
  CHECK(all.size() == 4);
  CHECK(all.distinct() == std::vector<std::size_t>{0, 2, 3});
  CHECK(all.at(1).name == "plan.sync.algorithm=ring");
  CHECK(overrides_of(all.at(1)) == "plan.sync.algorithm=ring ");
  CHECK(all.words(1) == "ring");
  CHECK(all.at(3).name == "plan.sync.algorithm=parameter_server plan.sync.servers=8");
}

TEST_CASE("An algorithm without servers takes the file's keys of servers out, but none that stands beside it") {
  const TemporaryFolder folder;
  const std::string file = folder.file("four.yaml", four_machines);
  CHECK(load_scenario(file, {"plan.sync.algorithm=ring"}).plan.data == 32);
  CHECK(load_scenario(file).plan.data == 16);  // two of the four machines are servers
  CHECK_THROWS_AS(load_scenario(file, {"plan.sync.servers=3", "plan.sync.algorithm=ring"}), ScenarioError);
}

TEST_CASE("A sweep compares a ring with servers that take machines, and with servers that are added") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  output_of({"sweep", folder.file("four.yaml", four_machines), "--vary",
             "plan.sync=ring,servers(2),servers(2,dedicated,added)", "--fidelity", "estimate", "-o", output});
  // The second row has the file's placement, which is dedicated: two machines train.
  CHECK(cells_of(output, {"cluster.nodes", "plan.sync.algorithm", "plan.sync.servers", "plan.sync.placement"}) ==
        std::vector<std::vector<std::string>>{
            {"", "ring", "", ""}, {"", "parameter_server", "2", ""}, {"6", "parameter_server", "2", "dedicated"}});
  // The output of a sweep can be read again: empty cells are the file's own values.
  const FilterResult again =
      run_program({"sweep", "--cases", output, "--fidelity", "estimate", "-o", folder.file("again.csv")});
  CHECK(again.status == 0);
  CHECK(read_text_file(folder.file("again.csv")) == read_text_file(output));
}

TEST_CASE("One scenario is compared with itself by values of a key") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  CHECK_THAT(output_of({"compare", file, "--vary", "plan.sync=ring,servers(2)", "--fidelity", "estimate"}),
             Catch::Contains("[1] ring") && Catch::Contains("[2] 2 servers"));
  check_refused({"compare", file}, {"1 scenario given", "--vary"});
}

}  // namespace foretrain::test
