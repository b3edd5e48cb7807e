// A sweep as a job array of Slurm: by a stand-in that sets Slurm's variables, and by a real one, which runs on this
// machine as long as the test does.
#include <iostream>

#include "model/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

namespace {

/// A folder and a scenario whose names a shell would read as more than names, and seven rows to share.
class Sweep {
 public:
  Sweep() {
    std::filesystem::create_directory(folder_.file(odd));
    write_file(scenario(), text_of(FORETRAIN_SOURCE_DIR "/scenarios/runs/sync-ring-4.yaml"));
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(odd + "/" + name); }
  [[nodiscard]] std::string scenario() const { return file("it's $(HOME) $$.yaml"); }
  [[nodiscard]] FilterResult run(const std::string& output, std::vector<std::string> more) const {
    const std::vector<std::string> sweep = {"sweep",      scenario(), "--vary", "workload.collective.size=1 MB..7 MB",
                                            "--fidelity", "estimate", "-o",     file(output)};
    more.insert(more.begin(), sweep.begin(), sweep.end());
    return run_program(more);
  }

 private:
  const std::string odd = "a `b` \"c\"";
  TemporaryFolder folder_;
};

FilterResult run_job(const std::string& script, int index) {
  return run_filter(
      {"env", "SLURM_ARRAY_TASK_ID=" + std::to_string(index), "SLURM_CPUS_PER_TASK=2", "sh", "-c", script}, "");
}

}  // namespace

TEST_CASE("The jobs of an array run the shards of a sweep, twice, and merged they are the bytes of one run") {
  const Sweep sweep;
  REQUIRE(sweep.run("one.csv", {}).status == 0);
  const FilterResult array = sweep.run("out.csv", {"--slurm", "3", "--jobs", "7"});
  REQUIRE(array.status == 0);
  CHECK_THAT(array.output, !Catch::Contains("'7'") && !Catch::Contains("--slurm"));
  CHECK_FALSE(std::filesystem::exists(sweep.file("out.csv")));
  // Seven rows in three shards: 3, 2 and 2. The last first, and once done they stay as they are.
  for (const int i : {3, 2, 1}) CHECK(run_job(array.output, i).status == 0);
  const std::string before = text_of(sweep.file("out.1-of-3.sqlite"));
  for (const int i : {1, 2, 3}) {
    const FilterResult again = run_job(array.output, i);
    CHECK(again.status == 0);
    CHECK_THAT(again.errors, Catch::Contains(i == 1 ? "3 rows kept" : "2 rows kept"));
  }
  CHECK(text_of(sweep.file("out.1-of-3.sqlite")) == before);
  output_of({"sweep", "merge", sweep.file("out.csv")});
  CHECK(text_of(sweep.file("out.csv")) == text_of(sweep.file("one.csv")));
}

TEST_CASE("A job whose sweep has become another one is refused, and so is its shard among those of the first") {
  const Sweep sweep;
  const std::string script = sweep.run("out.csv", {"--slurm=3"}).output;
  REQUIRE(run_job(script, 1).status == 0);
  write_file(sweep.scenario(), text_of(FORETRAIN_SOURCE_DIR "/scenarios/runs/sync-ring-4.yaml") + "# changed\n");
  const FilterResult changed = run_job(script, 1);
  CHECK(changed.status == 2);
  CHECK_THAT(changed.errors, Catch::Contains("holds 3 rows of another sweep"));
  REQUIRE(run_job(script, 2).status == 0);
  REQUIRE(run_job(script, 3).status == 0);
  check_refused({"sweep", "merge", sweep.file("out.csv")}, {"out.2-of-3.sqlite", "a shard of another sweep"});
  CHECK_FALSE(std::filesystem::exists(sweep.file("out.csv")));
}

TEST_CASE("Two tasks of a Slurm array, merged, give the bytes of one run") {
  const TemporaryFolder folder;
  const std::vector<std::string> sweep = {"sweep",      ring_of_four,
                                          "--vary",     "workload.collective.size=1 MB..40 MB",
                                          "--vary",     "workload.collective.ranks=2,4,400",
                                          "--fidelity", "estimate",
                                          "-o"};
  const auto to = [&](const std::string& name, std::vector<std::string> more = {}) {
    more.insert(more.begin(), folder.file(name));
    more.insert(more.begin(), sweep.begin(), sweep.end());
    return run_program(more);
  };
  REQUIRE(to("one.csv").status == 1);  // 400 ranks cannot be
  const FilterResult script = to("array.csv", {"--slurm", "2", "--jobs", "7"});
  REQUIRE(script.status == 0);
  CHECK_THAT(script.output, Catch::Contains("#SBATCH --array=1-2") && !Catch::Contains("'7'") &&
                                Catch::Contains("--shard \"$SLURM_ARRAY_TASK_ID/2\""));
  CHECK_FALSE(std::filesystem::exists(folder.file("array.csv")));
  write_file(folder.file("sweep.sh"), script.output);

  const FilterResult run = run_filter({FORETRAIN_SOURCE_DIR "/tests/cli/with_slurm", folder.file("slurm"), "sbatch",
                                       "--wait", "--output=/dev/null", folder.file("sweep.sh")},
                                      "");
  if (run.status == 77) {
    std::cerr << "skipped: " << run.output;
    return;
  }
  INFO(run.output + run.errors);
  CHECK(run.status == 1);  // both tasks have rows that cannot be
  const FilterResult merged = run_program({"sweep", "merge", folder.file("array.csv")});
  INFO(merged.errors);
  CHECK(merged.status == 1);
  CHECK(text_of(folder.file("array.csv")) == text_of(folder.file("one.csv")));
}

}  // namespace foretrain::test
