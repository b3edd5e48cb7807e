#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/golden.hpp"

namespace foretrain::test {

TEST_CASE("Scaling is printed as a table and drawn as a picture") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  const FilterResult result = run_program({"plot", "scaling", file, "--gpus", "16,1,2", "--algorithms", "ring,naive",
                                           "--fidelity", "estimate", "-o", folder.file("out.svg")});
  INFO(result.errors);
  CHECK(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("small step: time of one step, 8 sequences per GPU, bf16"));
  const std::string svg = text_of(folder.file("out.svg"));
  for (const char* label : {"small step", "GPUs", "ring", "naive", ">16<"}) CHECK_THAT(svg, Catch::Contains(label));
}

TEST_CASE("Numbers of GPUs that do not make whole nodes are left out with a warning") {
  const TemporaryFolder folder;
  const FilterResult result = run_program({"plot", "scaling", folder.file("small.yaml", small_step), "--gpus", "8,12",
                                           "--algorithms", "ring", "--fidelity", "estimate"});
  CHECK(result.status == 1);
  CHECK_THAT(result.errors, Catch::Contains("left out on 12 GPUs"));
}

TEST_CASE("A breakdown has one bar per value") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  const std::vector<std::string> arguments = {
      "plot", "breakdown", file, "--vary", "plan.sync.algorithm=ring,naive", "--fidelity", "estimate", "-o"};
  for (const char* picture : {"one.svg", "two.svg"}) {
    std::vector<std::string> all = arguments;
    all.push_back(folder.file(picture));
    REQUIRE(run_program(all).status == 0);
  }
  CHECK_THAT(text_of(folder.file("one.svg")), Catch::Contains(">naive<"));
  CHECK(text_of(folder.file("one.svg")) == text_of(folder.file("two.svg")));
}

TEST_CASE("A sweep of buckets is printed with its best value and drawn") {
  const TemporaryFolder folder;
  const FilterResult result =
      run_program({"plot", "sweep", folder.file("small.yaml", small_step), "--vary",
                   "plan.sync.bucket=1 MB,25 MB,1000 MB", "--fidelity", "estimate", "-o", folder.file("out.svg")});
  INFO(result.errors);
  CHECK(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("step is shortest at"));
  CHECK_THAT(result.output, Catch::Contains("exposed communication"));
  CHECK_THAT(text_of(folder.file("out.svg")), Catch::Contains("plan.sync.bucket"));
}

TEST_CASE("A second key of a sweep makes a curve for each of its values") {
  const TemporaryFolder folder;
  const FilterResult result =
      run_program({"plot", "sweep", folder.file("small.yaml", small_step), "--vary", "plan.sync.bucket=1 MB,1 GB",
                   "--vary", "plan.sync.compression=none,powersgd(2)", "--fidelity", "estimate"});
  INFO(result.errors);
  CHECK(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("powersgd(2) is shortest at"));
}

TEST_CASE("A sweep needs numbers for its axis, and points that can be predicted") {
  const TemporaryFolder folder;
  const std::string file = folder.file("small.yaml", small_step);
  const auto sweep = [&](const std::string& vary) { return run_program({"plot", "sweep", file, "--vary", vary}); };
  CHECK_THAT(sweep("plan.sync.algorithm=ring,tree").errors, Catch::Contains("needs numbers"));
  CHECK(sweep("plan.sync.algorithm=ring,tree").status == 2);
  CHECK(sweep("plan.sync.bucket=1 MB,1 s").status == 2);
  CHECK(sweep("plan.sync.bucket=1 MB,0.001 GB").status == 2);
  CHECK(sweep("workload.train.micro_batch=7,8").status == 1);
}

TEST_CASE("Only training can be plotted") {
  const TemporaryFolder folder;
  CHECK(run_program({"plot", "scaling", ring_of_four}).status == 2);
  CHECK(run_program({"plot", "breakdown", ring_of_four, "-o", folder.file("out.svg")}).status == 2);
  CHECK_FALSE(std::filesystem::exists(folder.file("out.svg")));
}

}  // namespace foretrain::test
