// `foretrain calibrate`: what it refuses before it measures anything.
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

TEST_CASE("A calibration says what is wrong before it measures") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.json");
  CHECK(run_program({"calibrate"}).status == 2);
  const FilterResult part = run_program({"calibrate", "--only", "memry", "-o", output});
  CHECK(part.status == 2);
  CHECK_THAT(part.errors, Catch::Contains("did you mean memory?"));
  const FilterResult nowhere = run_program({"calibrate", "-o", folder.file("missing/out.json")});
  CHECK(nowhere.status == 2);
  CHECK_THAT(nowhere.errors, Catch::Contains("name another"));
  CHECK(run_program({"calibrate", "--directory", folder.file("missing"), "-o", output}).status == 2);
  CHECK_FALSE(std::filesystem::exists(output));
}

}  // namespace foretrain::test
