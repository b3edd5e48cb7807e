#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

TEST_CASE("Attention by length is printed and drawn for what runs on the GPU") {
  const TemporaryFolder folder;
  const FilterResult result = run_program({"plot", "attention", "attention-crossover", "--lengths", "512,128",
                                           "--constant-tokens", "-o", folder.file("a.svg")});
  INFO(result.errors);
  CHECK(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("flash_2 is faster than standard at every length"));
  CHECK_THAT(result.output, !Catch::Contains("flash_3"));
  CHECK(std::filesystem::exists(folder.file("a.svg")));
}

TEST_CASE("Attention that does not run, or is none, is refused") {
  const FilterResult hopper = run_program({"plot", "attention", "attention-crossover", "--kinds", "flash_3"});
  CHECK(hopper.status == 2);
  CHECK_THAT(hopper.errors, Catch::Contains("needs Hopper"));
  const FilterResult unknown = run_program({"plot", "attention", "attention-crossover", "--kinds", "flash_9"});
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.errors, Catch::Contains("no such attention"));
  const FilterResult collective = run_program({"plot", "attention", ring_of_four});
  CHECK(collective.status == 2);
  CHECK_THAT(collective.errors, Catch::Contains("no attention operator"));
}

TEST_CASE("Attention says its memory") {
  const FilterResult text = run_program({"predict", "attention-flash-2"});
  CHECK_THAT(text.output, Catch::Contains("peak"));
  const FilterResult json = run_program({"predict", "attention-flash-2", "--json"});
  CHECK_THAT(json.output, Catch::Contains("\"memory_bytes\""));
  CHECK_THAT(json.output, Catch::Contains("\"saved\""));
}

}  // namespace foretrain::test
