#include <regex>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

TEST_CASE("explain says what bounds a step, what resources are worth and what would help") {
  const FilterResult result = run_program({"explain", "gpt2-xl-dgx-a100", "--jobs", "2"});
  INFO(result.errors);
  REQUIRE(result.status == 0);
  for (const char* text : {"Bottleneck: communication over the network", "What each resource is worth",
                           "network bandwidth", "gradients sent in bf16", "plan.sync.gradient_precision=bf16",
                           "Not possible here", "Parameter servers", "adding up", "By chance", "The chain of tasks"}) {
    CHECK_THAT(result.output, Catch::Contains(text));
  }
  CHECK(run_program({"explain", "gpt2-xl-dgx-a100", "--jobs", "1"}).output == result.output);
}

TEST_CASE("explain as JSON and as a picture") {
  const TemporaryFolder folder;
  const std::string picture = folder.file("tornado.svg");
  const FilterResult result = run_program({"explain", "loading-object-store", "--json", "-o", picture});
  REQUIRE(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("\"resource\": \"storage\"") && Catch::Contains("\"remedies\": []"));
  CHECK(std::filesystem::file_size(picture) > 1000);
}

TEST_CASE("compare tells scenarios side by side and what makes the difference") {
  const FilterResult result = run_program({"compare", "gpt2-xl-dgx-a100", "servers-slow-worker"});
  INFO(result.errors);
  REQUIRE(result.status == 0);
  CHECK_THAT(result.output, Catch::Contains("times as fast as [1]") && Catch::Contains("exposed communication -"));
  // What was asked differently, beside what came of it.
  for (const char* row : {"\n  Plan data +16 +8\n", "\n  Gradients by +ring +parameter_server\n"}) {
    CHECK(std::regex_search(result.output, std::regex(row)));
  }
  CHECK_THAT(run_program({"compare", "gpt2-xl-dgx-a100", "servers-slow-worker", "--json"}).output,
             Catch::Contains("\"speedups\""));
  CHECK(run_program({"compare", "gpt2-xl-dgx-a100"}).status == 2);
  CHECK(run_program({"compare", "gpt2-xl-dgx-a100", "no-such-scenario"}).status == 2);
}

TEST_CASE("timeline writes a trace, packed or not, and nothing else under its name") {
  const TemporaryFolder folder;
  REQUIRE(run_program({"timeline", "gpt2-xl-dgx-a100", "-o", folder.file("t.json")}).status == 0);
  REQUIRE(run_program({"timeline", "gpt2-xl-dgx-a100", "-o", folder.file("t.json.gz")}).status == 0);
  CHECK(std::filesystem::file_size(folder.file("t.json.gz")) < std::filesystem::file_size(folder.file("t.json")) / 4);
  const FilterResult picture = run_program({"timeline", "gpt2-xl-dgx-a100", "-o", folder.file("t.svg")});
  CHECK(picture.status == 2);
  CHECK_THAT(picture.errors, Catch::Contains("plot timeline"));
}

}  // namespace foretrain::test
