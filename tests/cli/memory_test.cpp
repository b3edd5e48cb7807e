#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

TEST_CASE("A GPU's memory is told with its peak, the largest micro-batch and what would help") {
  const FilterResult fits = run_program({"memory", "fit-fsdp-llama3-8b"});
  INFO(fits.errors);
  CHECK(fits.status == 0);
  CHECK_THAT(fits.output, Catch::Contains("Peak: loss of layer 34 (head), micro-batch 1"));
  CHECK_THAT(fits.output, Catch::Contains("logits and loss"));
  CHECK_THAT(fits.output, Catch::Contains("Largest micro-batch that fits: 2 (2 now)"));
  const FilterResult not_yet = run_program({"memory", "fit-memory-7b"});
  CHECK(not_yet.status == 0);
  CHECK_THAT(not_yet.output, Catch::Contains("DOES NOT FIT"));
  CHECK_THAT(not_yet.output, Catch::Contains("No micro-batch fits"));
  CHECK_THAT(not_yet.output, Catch::Contains("Fits with offload: optimizer"));
}

TEST_CASE("A GPU's memory as JSON has every moment") {
  const FilterResult result = run_program({"memory", "fit-zero-2", "--json"});
  REQUIRE(result.status == 0);
  for (const char* key : {"\"memory_per_gpu_bytes\"", "\"largest_micro_batch\"", "\"timeline\"", "\"phase\": \"loss\"",
                          "\"micro_batches\": 1"}) {
    CHECK_THAT(result.output, Catch::Contains(key));
  }
}

TEST_CASE("A GPU's memory over the step is drawn, twice the same") {
  const TemporaryFolder folder;
  for (const char* picture : {"one.svg", "two.svg"}) {
    const FilterResult result =
        run_program({"plot", "memory-timeline", "fit-fsdp-llama3-8b", "-o", folder.file(picture)});
    INFO(result.errors);
    REQUIRE(result.status == 0);
  }
  const auto text = [&](const char* picture) {
    std::ifstream file(folder.file(picture));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  CHECK_THAT(text("one.svg"), Catch::Contains("optimizer states"));
  CHECK_THAT(text("one.svg"), Catch::Contains("peak"));
  CHECK(text("one.svg") == text("two.svg"));
}

TEST_CASE("Memory is a matter of training") {
  const FilterResult result = run_program({"memory", ring_of_four});
  CHECK(result.status == 2);
  CHECK_THAT(result.errors, Catch::Contains("workload"));
  CHECK_THAT(result.errors, Catch::Contains("nothing that is trained"));
  CHECK(result.output.empty());
}

}  // namespace foretrain::test
