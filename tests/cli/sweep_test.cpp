#include <fstream>

#include "model/base/csv.hpp"
#include "tests/catch.hpp"
#include "tests/changes.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

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

FilterResult sweep_to(const std::string& output, const std::vector<std::string>& more = {}) {
  return run_program(with(with(six_rings, {output}), more));
}

CsvTable swept(const std::string& output, const std::vector<std::string>& more = {}) {
  const FilterResult result = sweep_to(output, more);
  INFO(result.errors);
  REQUIRE(result.status == 0);
  return table_in(output);
}

/// The training as it is before and after each change.
std::string table_of_changes(const std::string& base, bool backwards) {
  std::vector<std::string> columns;
  for (const auto& [key, value] : changes) {
    if (std::ranges::find(columns, key) == columns.end()) columns.push_back(key);
  }
  std::vector<std::string> header = {"case", "base"};
  header.insert(header.end(), columns.begin(), columns.end());
  std::vector<std::string> lines;
  for (const auto& [key, value] : changes) {
    for (const bool changed : {false, true}) {
      std::vector<std::string> cells = {changed ? key + " = " + value : "before " + key + " = " + value, base};
      for (const std::string& column : columns) cells.push_back(changed && column == key ? value : "");
      lines.push_back(csv_line(cells));
    }
  }
  if (backwards) std::reverse(lines.begin(), lines.end());
  std::string text = csv_line(header) + "\n";
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// Case and step time of each row, by case; `more`: which rows, and by how many workers.
std::map<std::string, std::string> steps_of(const std::string& table, const std::string& output,
                                            const std::vector<std::string>& more) {
  output_of(with({"sweep", "--cases", table, "-o", output}, more));
  if (more.back().find('/') != std::string::npos) {  // a shard, the only one that there is
    output_of({"sweep", "merge", output, "--incomplete"});
  }
  std::map<std::string, std::string> lines;
  const CsvTable predicted = table_in(output);
  for (const CsvRow& row : predicted.rows) {
    std::vector<std::string> cells;
    for (const CsvCell& cell : row) cells.push_back(cell.text);
    lines[row.front().text] = csv_line(cells);
  }
  return lines;
}

}  // namespace

TEST_CASE("A sweep has one row per combination, the last key changing fastest, whatever the number of workers") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv"), again = folder.file("again.csv");
  const CsvTable table = swept(output, {"--jobs", "1"});
  CHECK(column(table, "workload.collective.size") ==
        std::vector<std::string>{"40 MB", "40 MB", "80 MB", "80 MB", "160 MB", "160 MB"});
  CHECK(column(table, "workload.collective.ranks") == std::vector<std::string>{"2", "4", "2", "4", "2", "4"});
  // 2 · 3/4 · 160 MB / 16 GB/s = 15 ms for the last.
  CHECK(std::stod(column(table, "predicted.time_s").back()) == Approx(0.015).epsilon(0.01));
  CHECK_FALSE(std::filesystem::exists(output + ".partial"));
  swept(again, {"--jobs", "4"});
  CHECK(text_of(again) == text_of(output));
  // The output of a sweep is a table of cases.
  output_of({"sweep", "--cases", output, "--fidelity", "estimate", "-o", again});
  CHECK(text_of(again) == text_of(output));
}

TEST_CASE("A sweep is relative to measured runs as a prediction is, and other runs make another table") {
  const TemporaryFolder folder;
  const auto times = [&](const std::vector<std::string>& more) {
    return column(swept(folder.file("out.csv"), more), "predicted.time_s");
  };
  const std::vector<std::string> plain = times({});
  REQUIRE(plain.size() == 6);
  // The run is predicted to take 15 ms, and took two or four times as long: so does everything.
  for (const int factor : {2, 4}) {
    const std::string runs =
        folder.file("runs.csv", "case,base,measured.time\nmine,sync-ring-4," + std::to_string(15 * factor) + " ms\n");
    const std::vector<std::string> relative = times({"--anchor", runs});
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(std::stod(relative[i]) == Approx(factor * std::stod(plain[i])).epsilon(0.01));
    }
  }
  CHECK(sweep_to(folder.file("none.csv"), {"--anchor", folder.file("none.csv")}).status == 2);
}

TEST_CASE("Shards share the rows out, cannot overwrite each other, and make the table of one run") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv"), whole = folder.file("whole.csv");
  const std::vector<std::string> all = column(swept(whole), "case");
  REQUIRE(sweep_to(output, {"--shard", "1/2"}).status == 0);
  // Half of the rows: refused, but for --incomplete.
  const FilterResult half = run_program({"sweep", "merge", output});
  CHECK(half.status == 1);
  CHECK_THAT(half.errors, Catch::Contains("3 of 6 rows are missing, in shards 2 of 2"));
  CHECK_FALSE(std::filesystem::exists(output));
  output_of({"sweep", "merge", output, "--incomplete"});
  CHECK(column(table_in(output), "case") == std::vector<std::string>{all[0], all[2], all[4]});

  REQUIRE(sweep_to(output, {"--shard", "2/2"}).status == 0);
  output_of({"sweep", "merge", output});
  CHECK(text_of(output) == text_of(whole));
  output_of({"sweep", "merge", folder.file("all.sqlite"), folder.file("out.1-of-2.sqlite"),
             folder.file("out.2-of-2.sqlite")});
  // The merged database is that of the whole sweep, which finds everything there.
  const FilterResult nothing_left = sweep_to(folder.file("all.sqlite"));
  CHECK(nothing_left.status == 0);
  CHECK_THAT(nothing_left.errors, Catch::Contains("6 rows kept"));
  output_of({"sweep", "merge", folder.file("one.csv"), folder.file("all.sqlite"), "--where", "size > 1e8", "--sort",
             "-time_s", "--top", "1"});
  CHECK(column(table_in(folder.file("one.csv")), "case") == std::vector<std::string>{all[5]});

  CHECK(sweep_to(folder.file("none.csv"), {"--shard", "3/2"}).status == 2);
  // A shard of another sweep is none of this one.
  output_of({"sweep", ring_of_four, "--vary", "workload.collective.ranks=2,4", "--fidelity", "estimate", "--shard",
             "1/1", "-o", folder.file("other.csv")});
  check_refused({"sweep", "merge", output, folder.file("out.1-of-2.sqlite"), folder.file("other.1-of-1.sqlite")},
                {"shard of another sweep"});
}

TEST_CASE("A database keeps what is finished, and refuses another sweep") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.sqlite");
  const FilterResult first = sweep_to(output);
  REQUIRE(first.status == 0);
  CHECK_THAT(first.output, Catch::Contains("ranks") && Catch::Contains("2.50 ms"));
  const FilterResult again = sweep_to(output, {"--where", "time_s > 0.01"});
  CHECK(again.status == 0);
  CHECK_THAT(again.errors, Catch::Contains("6 rows kept from an earlier run"));
  CHECK_THAT(again.output, Catch::Contains("15.0 ms") && !Catch::Contains("2.50 ms"));
  const FilterResult other = sweep_to(output, {"--set", "cluster.nodes=2"});
  CHECK(other.status == 2);
  CHECK_THAT(other.errors, Catch::Contains("another sweep") && Catch::Contains("rm '"));
}

TEST_CASE("Keys that change together, rows that cannot be, and the best rows on stdout") {
  const TemporaryFolder folder;
  const std::vector<std::string> sweep = {
      "sweep",      ring_of_four, "--vary", "workload.collective.ranks,workload.collective.size=2:1 MB,4:2 MB,8:4 MB",
      "--fidelity", "estimate"};
  const FilterResult shown = run_program(sweep);
  CHECK(shown.status == 1);
  CHECK_THAT(shown.output, Catch::Contains("1 MB") && Catch::Contains("2 MB") && !Catch::Contains("4 MB"));
  check_has(words_of(shown.errors),
            {"1 of 3 rows infeasible or failed", "1 infeasible configurations", "8 ranks on 4 GPUs"});
  const FilterResult skipped = run_program(with(sweep, {"--skip-impossible", "-o", folder.file("out.csv")}));
  CHECK(skipped.status == 0);
  CHECK_THAT(words_of(skipped.errors),
             !Catch::Contains("infeasible or failed") && Catch::Contains("1 infeasible configurations, omitted:"));
  CHECK(column(table_in(folder.file("out.csv")), "workload.collective.ranks") == std::vector<std::string>{"2", "4"});
}

TEST_CASE("A row that cannot be predicted says why, and the others stand") {
  const TemporaryFolder folder;
  const FilterResult result = run_program({"sweep", ring_of_four, "--vary", "workload.collective.ranks=4,400",
                                           "--fidelity", "estimate", "-o", folder.file("out.csv")});
  CHECK(result.status == 1);
  CHECK_THAT(result.errors, Catch::Contains("1 of 2 rows infeasible or failed"));
  const CsvTable table = table_in(folder.file("out.csv"));
  CHECK_FALSE(column(table, "predicted.time_s")[0].empty());
  CHECK(column(table, "predicted.error")[0].empty());
  CHECK(column(table, "predicted.time_s")[1].empty());
  CHECK_THAT(column(table, "predicted.error")[1], Catch::Contains("workload.collective.ranks"));
}

TEST_CASE("A sweep without values, without a table, or to nowhere is refused, and nothing is written") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  CHECK(run_program({"sweep", "-o", output}).status == 2);
  CHECK(run_program({"sweep", ring_of_four, "--vary", "workload.collective.size", "-o", output}).status == 2);
  CHECK(run_program({"sweep", ring_of_four, "--vary", "a=1", "--vary", "a=2", "-o", output}).status == 2);
  for (const char* column : {"case", "base", "measured.time", "predicted.time_s", "row"}) {
    check_refused({"sweep", ring_of_four, "--vary", std::string(column) + "=1,2", "-o", output},
                  {"--vary ", "is a column of tables"});
  }
  // A line end would leave the comment of a script for Slurm, and what follows it would be run.
  check_refused({"sweep", ring_of_four, "--vary", "workload.collective.ranks=2,4", "--slurm", "2", "-o",
                 folder.file("a\ntouch pwned\n#.csv")},
                {"a control character in the name of a file"});
  CHECK(sweep_to(folder.file("no/such/folder/out.csv")).status == 2);
  const FilterResult into_folder = sweep_to(folder.file(""));
  CHECK(into_folder.status == 2);
  CHECK_THAT(into_folder.errors, Catch::Contains("this is a folder"));
  CHECK(sweep_to(output, {"--where", "no_such_column = 1"}).status == 2);
  CHECK(run_program({"sweep", ring_of_four, "--shard", "1/2"}).status == 2);
  // A misspelt scenario is the user's mistake, not that of each of the rows.
  const std::string misspelt = folder.file("misspelt.csv");
  CHECK(run_program({"sweep", "sync-ring-5", "--vary", "workload.collective.size=1 MB,2 MB", "-o", misspelt}).status ==
        2);
  CHECK_FALSE(std::filesystem::exists(misspelt));
  CHECK_FALSE(std::filesystem::exists(output));
  CHECK_FALSE(std::filesystem::exists(output + ".partial"));
}

TEST_CASE("What a worker remembers from one row to the next changes no digit") {
  // Every row is predicted by a process of its own (a shard of one row), and by one process that has predicted others
  // before, in either order and in runs shared by three.
  const TemporaryFolder folder;
  std::ofstream(folder.file("base.yaml")) << small_training;
  std::ofstream(folder.file("forwards.csv")) << table_of_changes(folder.file("base.yaml"), false);
  std::ofstream(folder.file("backwards.csv")) << table_of_changes(folder.file("base.yaml"), true);
  for (const std::string fidelity : {"estimate", "flows"}) {
    int runs = 0;
    const auto steps = [&](const char* table, const std::vector<std::string>& more) {
      return steps_of(folder.file(table), folder.file(fidelity + std::to_string(runs++) + ".csv"),
                      with({"--fidelity", fidelity}, more));
    };
    const auto together = steps("forwards.csv", {"--jobs", "1"});
    REQUIRE(together.size() == 2 * changes.size());
    CHECK(steps("backwards.csv", {"--jobs", "1"}) == together);
    CHECK(steps("backwards.csv", {"--jobs", "3"}) == together);
    const std::string shards = "/" + std::to_string(2 * changes.size());
    for (std::size_t row = 1; row < 2 * changes.size(); row += row == 1 ? 1 : 2) {
      for (const auto& [name, line] : steps("forwards.csv", {"--jobs", "1", "--shard", std::to_string(row) + shards})) {
        CHECK(together.at(name) == line);
      }
    }
  }
}

}  // namespace foretrain::test
