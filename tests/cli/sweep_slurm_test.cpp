// A sweep as a job array of a real Slurm, which runs on this machine as long as the test does.
#include <iostream>

#include "model/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

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
