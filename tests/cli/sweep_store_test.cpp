// The database of a sweep: what is kept, whose it is, and what of it is written.
#include <fstream>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "reports/cli/sweep_merge.hpp"
#include "reports/cli/sweep_rows.hpp"
#include "reports/cli/sweep_store.hpp"
#include "reports/cli/sweep_table.hpp"
#include "reports/result/csv.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

using Kind = Reply::Kind;

/// A prediction of which step time and fits are known.
Reply answer(const std::string& step_time, const std::string& fits = "true") {
  std::vector<std::string> cells(predicted_columns().size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (predicted_columns()[i] == "predicted.step_time_s") cells[i] = step_time;
    if (predicted_columns()[i] == "predicted.fits") cells[i] = fits;
  }
  std::string text;
  for (const std::string& cell : cells) text += cell + ",";
  text.pop_back();
  return {text, Kind::answer};
}

const std::vector<std::string> two_columns = {"case", "plan.size"};

/// Four rows: 3 s, 1 s that do not fit, none, 2 s.
void fill(SweepStore& store) {
  store.add(0, {"a", "8"}, answer("3"));
  store.add(1, {"b", "16 MB"}, answer("1", "false"));
  store.add(2, {"c", "4"}, {"file:1:2: plan.size: 4 is not even; 2", Kind::bad_input});
  store.add(3, {"d", "2 MB"}, answer("2"));
}

std::string cases_of(const Selection& selection) {
  const TemporaryFolder folder;
  SweepStore store("", {1, 4}, two_columns);
  fill(store);
  write_table(store, selection, folder.file("out.csv"));
  std::string cases;
  std::ifstream file(folder.file("out.csv"));
  for (std::string line; std::getline(file, line);) cases += line.substr(0, line.find(','));
  return cases.substr(4);  // behind "case" of the header
}

}  // namespace

TEST_CASE("An interrupted sweep goes on where it stopped, and tries again what was interrupted") {
  const TemporaryFolder folder;
  const std::string path = folder.file("out.csv.partial");
  const SweepIdentity identity = {7, 4};
  {
    SweepStore store(path, identity, two_columns);
    store.add(2, {"c", "with, \"comma\""}, answer("0.1"));
    store.add(0, {"a", "1"}, {"the process was ended by signal 9", Kind::interrupted});
    store.commit();
  }
  SweepStore store(path, identity, two_columns);
  CHECK(store.count() == 1);
  CHECK(store.finished() == std::vector{false, false, true, false});
  store.add(0, {"a", "1"}, answer("0.30000000000000004"));
  write_table(store, {}, folder.file("out.csv"));
  const std::string written = text_of(folder.file("out.csv"));
  CHECK_THAT(written, Catch::Contains("a,1,0.30000000000000004,") && Catch::Contains("c,\"with, \"\"comma\"\"\",0.1,"));
  CHECK(written.find("a,1") < written.find("c,"));
}

TEST_CASE("Shards become one store, in the order of their rows; of two alike the first counts") {
  const TemporaryFolder folder;
  const SweepIdentity identity = {1, 5};
  SweepStore all("", identity, two_columns);
  for (const std::size_t shard : {2, 1}) {
    const std::string file = folder.file(std::to_string(shard) + ".sqlite");
    {
      SweepStore store(file, identity, two_columns);
      for (std::size_t row = shard - 1; row < 5; row += 2) store.add(row, {std::to_string(row), "8"}, answer("1"));
      if (shard == 1) store.add(1, {"again", "8"}, answer("2"));
      store.commit();
      if (shard == 2) CHECK_THROWS_WITH(all.merge(file), Catch::Contains("another sweep is writing it"));
    }
    all.merge(file);
  }
  CHECK(all.finished() == std::vector<bool>(5, true));
  write_table(all, {}, folder.file("out.csv"));
  std::ifstream file(folder.file("out.csv"));
  std::string cases;
  for (std::string line; std::getline(file, line);) cases += line.substr(0, line.find(','));
  CHECK(cases == "case01234");
}

TEST_CASE("A database belongs to one sweep, and to one process at a time") {
  const TemporaryFolder folder;
  const std::string path = folder.file("out.csv.partial");
  {
    SweepStore store(path, {7, 4}, two_columns);
    store.add(0, {"a", "1"}, answer("1"));
    CHECK_THROWS_WITH(SweepStore(path, {7, 4}, two_columns), Catch::Contains("another sweep is writing it"));
  }
  // Other inputs, another number of rows: refused with the remedy, and nothing is lost.
  for (const SweepIdentity& other : {SweepIdentity{8, 4}, SweepIdentity{7, 5}}) {
    CHECK_THROWS_WITH(SweepStore(path, other, two_columns),
                      Catch::Contains("1 rows of another sweep") && Catch::Contains("rm '" + path + "'"));
  }
  CHECK(SweepStore(path, {7, 4}, two_columns).count() == 1);
  std::ofstream(folder.file("text")) << "row of 1234,case\n" << std::string(5000, 'x');
  CHECK_THROWS_WITH(SweepStore(folder.file("text"), {7, 4}, two_columns), Catch::Contains("no sweep's database"));
  CHECK_THROWS_AS(SweepStore(folder.file("no/such/folder"), {7, 4}, two_columns), UsageError);
  CHECK_THROWS_WITH(SweepStore(folder.file("absent")), Catch::Contains("there is no such file"));
}

TEST_CASE("Rows are selected and sorted by columns, quantities by their size") {
  CHECK(cases_of({}) == "abcd");
  CHECK(cases_of({.where = "fits"}) == "ad");
  CHECK(cases_of({.where = "step_time_s >= 2"}) == "ad");
  CHECK(cases_of({.where = "predicted.step_time_s < 3 AND predicted.fits"}) == "d");
  CHECK(cases_of({.where = "plan.size > 1e6"}) == "bd");         // 16 MB, 2 MB
  CHECK(cases_of({.where = "size < 10"}) == "ac");               // as numbers: as texts "16 MB" would be, too
  CHECK(cases_of({.where = "\"case\" = 'plan.size'"}).empty());  // a text, not a column
  CHECK(cases_of({.sort = "size"}) == "cadb");
  CHECK(cases_of({.sort = "-step_time_s"}) == "adbc");  // without a prediction: at the end
  CHECK(cases_of({.sort = "step_time_s", .top = 2}) == "bd");
  CHECK(cases_of({.skip_impossible = true}) == "abd");
  SweepStore store("", {1, 4}, two_columns);
  for (const char* wrong : {"no_such_column > 1", "fits); DROP TABLE rows; --", "fits) --", "\"plan.sise\" = 1"}) {
    INFO(wrong);
    CHECK_THROWS_AS(check_selection(store, {.where = wrong}), UsageError);
  }
}

TEST_CASE("An expression that fails over a row writes nothing") {
  const TemporaryFolder folder;
  SweepStore store("", {1, 4}, two_columns);
  fill(store);
  CHECK_THROWS_WITH(write_table(store, {.where = "abs(-9223372036854775807 - 1) > row"}, folder.file("out.csv")),
                    Catch::StartsWith("--where, --sort: integer overflow"));
  CHECK_FALSE(std::filesystem::exists(folder.file("out.csv")));
}

TEST_CASE("A database that no sweep wrote stays as it is") {
  const TemporaryFolder folder;
  const std::string database = folder.file("own.db");
  SQLite::Database(database, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE letters (text TEXT)");
  const std::string before = text_of(database);
  CHECK_THROWS_WITH(SweepStore(database, {7, 4}, two_columns), Catch::Contains("no sweep's database"));
  CHECK_THROWS_WITH(SweepStore(database), Catch::Contains("no sweep's database"));
  CHECK(text_of(database) == before);
}

TEST_CASE("JSON lines hold numbers as numbers, and nothing as null") {
  const TemporaryFolder folder;
  SweepStore store("", {1, 4}, two_columns);
  fill(store);
  write_table(store, {.top = 2}, folder.file("out.jsonl"));
  const std::string text = text_of(folder.file("out.jsonl"));
  CHECK_THAT(text, Catch::StartsWith(R"({"case":"a","plan.size":8,"predicted.step_time_s":3.0,)"));
  check_has(text, {R"("plan.size":"16 MB")", R"("predicted.fits":false)", R"("predicted.mfu":null)"});
  CHECK(std::ranges::count(text, '\n') == 2);
}

TEST_CASE("The best rows are those that fit, the fastest first, and reasons are reported once") {
  SweepStore store("", {1, 4}, two_columns);
  fill(store);
  store.add(4, {"e", "6"}, {"file:1:9: plan.size: 6 is not even; 2", Kind::bad_input});
  const std::string best = best_rows(store, {}, {"case", "plan.size"});
  check_has(best, {"size", "16 MB", "no"});
  CHECK(best.find("2 MB") < best.find("16 MB"));  // which does not fit, though it is faster
  CHECK_THAT(reasons(store, Kind::bad_input).front(), Catch::StartsWith("2 × ") && Catch::Contains("4 is not even"));
  CHECK(reasons(store, Kind::failure).empty());
}

TEST_CASE("The shard is in the name of its file") {
  CHECK(shard_file("a/out.csv", {2, 8}) == "a/out.2-of-8.sqlite");
  CHECK(is_database("out.SQLITE"));
  CHECK_FALSE(is_database("out.csv"));
}

TEST_CASE("Rows of an earlier run are kept while the files that values name, and that these name, are the same") {
  const TemporaryFolder folder;
  const auto fingerprint = [&] {
    SweepInput input;
    input.table = folder.file("cases.csv");
    return fingerprint_of(sweep_rows(input), input, Fidelity::flows);
  };
  write_file(folder.file("cases.csv"), "case,base,jobs\na,sync-ring-4,\"[{ scenario: run.yaml, nodes: 4..7 }]\"\n");
  write_file(folder.file("run.yaml"), "cluster: { node: node.yaml }\n");
  write_file(folder.file("node.yaml"), "name: a\n");
  const std::uint64_t before = fingerprint();
  CHECK(fingerprint() == before);
  write_file(folder.file("node.yaml"), "name: b\n");
  CHECK(fingerprint() != before);
  write_file(folder.file("node.yaml"), "name: a\n");
  CHECK(fingerprint() == before);
}

}  // namespace foretrain::test
