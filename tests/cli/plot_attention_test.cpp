#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

TEST_CASE("Attention by length is printed and drawn for what runs on the GPU") {
  const TemporaryFolder folder;
  const std::string result = output_of({"plot", "attention", "attention-crossover", "--lengths", "512,128",
                                        "--constant-tokens", "-o", folder.file("a.svg")});
  CHECK_THAT(result, Catch::Contains("flash_2 is faster than standard at every length"));
  CHECK_THAT(result, !Catch::Contains("flash_3"));
  CHECK(std::filesystem::exists(folder.file("a.svg")));
  check_refused({"plot", "attention", ring_of_four}, {"no attention operator"});
}

TEST_CASE("Attention says its memory") {
  const FilterResult text = run_program({"predict", "attention-flash-2"});
  CHECK_THAT(text.output, Catch::Contains("peak"));
  const FilterResult json = run_program({"predict", "attention-flash-2", "--json"});
  check_has(json.output, {"\"memory_bytes\"", "\"saved\""});
}

}  // namespace foretrain::test
