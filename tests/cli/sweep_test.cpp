#include "model/base/csv.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

/// Column of a table by its name.
std::vector<std::string> column(const CsvTable& table, const std::string& name) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    if (table.header[i].text != name) continue;
    for (const CsvRow& row : table.rows) cells.push_back(row[i].text);
  }
  return cells;
}

CsvTable table_in(const std::string& path) { return parse_csv(text_of(path), path); }

/// Sizes of 40, 80 and 160 MB, on rings of two and four.
const std::vector<std::string> six_rings = {"sweep",      ring_of_four,
                                            "--vary",     "workload.collective.size=40 MB..160 MBx2",
                                            "--vary",     "workload.collective.ranks=2,4",
                                            "--fidelity", "estimate",
                                            "-o"};

FilterResult sweep_to(const std::string& output, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = six_rings;
  arguments.push_back(output);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

}  // namespace

TEST_CASE("A sweep has one row per combination, the last key changing fastest") {
  const TemporaryFolder folder;
  REQUIRE(sweep_to(folder.file("out.csv")).status == 0);
  const CsvTable table = table_in(folder.file("out.csv"));
  CHECK(column(table, "workload.collective.size") ==
        std::vector<std::string>{"40 MB", "40 MB", "80 MB", "80 MB", "160 MB", "160 MB"});
  CHECK(column(table, "workload.collective.ranks") == std::vector<std::string>{"2", "4", "2", "4", "2", "4"});
  // 2 · 3/4 · 160 MB / 16 GB/s = 15 ms for the last.
  CHECK(std::stod(column(table, "predicted.time").back()) == Approx(0.015).epsilon(0.01));
  CHECK_FALSE(std::filesystem::exists(folder.file("out.csv.partial")));
}

TEST_CASE("The table does not depend on the number of workers") {
  const TemporaryFolder folder;
  REQUIRE(sweep_to(folder.file("one.csv"), {"--jobs", "1"}).status == 0);
  REQUIRE(sweep_to(folder.file("four.csv"), {"--jobs", "4"}).status == 0);
  CHECK(text_of(folder.file("one.csv")) == text_of(folder.file("four.csv")));
}

TEST_CASE("Shards share the rows out") {
  const TemporaryFolder folder;
  REQUIRE(sweep_to(folder.file("whole.csv")).status == 0);
  REQUIRE(sweep_to(folder.file("first.csv"), {"--shard", "1/2"}).status == 0);
  REQUIRE(sweep_to(folder.file("second.csv"), {"--shard", "2/2"}).status == 0);
  const std::vector<std::string> whole = column(table_in(folder.file("whole.csv")), "case");
  const std::vector<std::string> first = column(table_in(folder.file("first.csv")), "case");
  const std::vector<std::string> second = column(table_in(folder.file("second.csv")), "case");
  CHECK(first == std::vector<std::string>{whole[0], whole[2], whole[4]});
  CHECK(second == std::vector<std::string>{whole[1], whole[3], whole[5]});
  CHECK(sweep_to(folder.file("none.csv"), {"--shard", "3/2"}).status == 2);
}

TEST_CASE("What a sweep writes is a table of cases") {
  const TemporaryFolder folder;
  REQUIRE(sweep_to(folder.file("first.csv")).status == 0);
  REQUIRE(run_program(
              {"sweep", "--cases", folder.file("first.csv"), "--fidelity", "estimate", "-o", folder.file("second.csv")})
              .status == 0);
  CHECK(text_of(folder.file("first.csv")) == text_of(folder.file("second.csv")));
}

TEST_CASE("A row that cannot be predicted says why, and the others stand") {
  const TemporaryFolder folder;
  const FilterResult result = run_program({"sweep", ring_of_four, "--vary", "workload.collective.ranks=4,400",
                                           "--fidelity", "estimate", "-o", folder.file("out.csv")});
  CHECK(result.status == 1);
  CHECK_THAT(result.errors, Catch::Contains("1 of 2 predictions failed"));
  const CsvTable table = table_in(folder.file("out.csv"));
  CHECK_FALSE(column(table, "predicted.time")[0].empty());
  CHECK(column(table, "predicted.error")[0].empty());
  CHECK(column(table, "predicted.time")[1].empty());
  CHECK_THAT(column(table, "predicted.error")[1], Catch::Contains("workload.collective.ranks"));
}

TEST_CASE("A sweep without values, without a table, or to nowhere is refused, and nothing is written") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  CHECK(run_program({"sweep", "-o", output}).status == 2);
  CHECK(run_program({"sweep", ring_of_four, "--vary", "workload.collective.size", "-o", output}).status == 2);
  CHECK(run_program({"sweep", ring_of_four, "--vary", "a=1", "--vary", "a=2", "-o", output}).status == 2);
  CHECK(sweep_to(folder.file("no/such/folder/out.csv")).status == 2);
  // A misspelt scenario is the user's mistake, not that of each of the rows.
  const std::string misspelt = folder.file("misspelt.csv");
  CHECK(run_program({"sweep", "sync-ring-5", "--vary", "workload.collective.size=1 MB,2 MB", "-o", misspelt}).status ==
        2);
  CHECK_FALSE(std::filesystem::exists(misspelt));
  CHECK_FALSE(std::filesystem::exists(output));
  CHECK_FALSE(std::filesystem::exists(output + ".partial"));
}

}  // namespace foretrain::test
