#include <regex>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

TEST_CASE("explain says what bounds a step, sensitivity and single changes") {
  const std::string result = output_of({"explain", "gpt2-xl-dgx-a100", "--jobs", "2"});
  check_has(result, {"Bottleneck: communication over the network", "Sensitivity", "network bandwidth",
                     "gradient reduction", "plan.sync.gradient_precision=bf16", "Infeasible", "Parameter servers",
                     "server CPU", "Step-time percentiles", "Critical path"});
  CHECK(run_program({"explain", "gpt2-xl-dgx-a100", "--jobs", "1"}).output == result);
}

TEST_CASE("explain as JSON and as a picture") {
  const TemporaryFolder folder;
  const std::string picture = folder.file("tornado.svg");
  CHECK_THAT(output_of({"explain", "loading-object-store", "--json", "-o", picture}),
             Catch::Contains("\"resource\": \"storage\"") && Catch::Contains("\"remedies\": []"));
  CHECK(std::filesystem::file_size(picture) > 1000);
}

TEST_CASE("compare tells scenarios side by side and what makes the difference") {
  const std::string result = output_of({"compare", "gpt2-xl-dgx-a100", "servers-slow-worker"});
  CHECK_THAT(result, Catch::Contains("times the samples/s of [1]") && Catch::Contains("exposed communication -"));
  // Changed settings, beside their effect.
  for (const char* row : {"\n  Data +16 +8\n", "\n  Gradient sync algorithm +ring +parameter_server\n"}) {
    CHECK(std::regex_search(result, std::regex(row)));
  }
  CHECK_THAT(run_program({"compare", "gpt2-xl-dgx-a100", "servers-slow-worker", "--json"}).output,
             Catch::Contains("\"speedups\""));
  CHECK(run_program({"compare", "gpt2-xl-dgx-a100"}).status == 2);
  CHECK(run_program({"compare", "gpt2-xl-dgx-a100", "no-such-scenario"}).status == 2);
}

TEST_CASE("timeline writes a trace, packed or not, and nothing else under its name") {
  const TemporaryFolder folder;
  output_of({"timeline", "gpt2-xl-dgx-a100", "-o", folder.file("t.json")});
  output_of({"timeline", "gpt2-xl-dgx-a100", "-o", folder.file("t.json.gz")});
  CHECK(std::filesystem::file_size(folder.file("t.json.gz")) < std::filesystem::file_size(folder.file("t.json")) / 4);
  check_refused({"timeline", "gpt2-xl-dgx-a100", "-o", folder.file("t.svg")}, {"plot timeline"});
}

}  // namespace foretrain::test
