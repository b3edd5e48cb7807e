#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretrain::test {

TEST_CASE("A GPU's memory is told with its peak, the largest micro-batch and remedies") {
  const FilterResult fits = run_program({"memory", "fit-fsdp-llama3-8b"});
  INFO(fits.errors);
  CHECK(fits.status == 0);
  check_has(fits.output,
            {"Peak at: head (loss) of micro-batch no. 1", "logits and loss", "Largest micro-batch size that fits: 2 (now 2)"});
  check_has(output_of({"memory", "fit-memory-7b"}), {"DOES NOT FIT", "No micro-batch size fits", "offload: optimizer"});
}

TEST_CASE("A GPU's memory as JSON has every moment") {
  check_has(output_of({"memory", "fit-zero-2", "--json"}),
            {"\"memory_per_gpu_bytes\"", "\"largest_micro_batch\"", "\"timeline\"", "\"phase\": \"loss\"",
             "\"micro_batches\": 1"});
}

TEST_CASE("A GPU's memory over the step is drawn, twice the same") {
  const TemporaryFolder folder;
  for (const char* picture : {"one.svg", "two.svg"}) {
    output_of({"plot", "memory-timeline", "fit-fsdp-llama3-8b", "-o", folder.file(picture)});
  }
  const auto text = [&](const char* picture) {
    std::ifstream file(folder.file(picture));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  CHECK_THAT(text("one.svg"), Catch::Contains("optimizer states"));
  CHECK_THAT(text("one.svg"), Catch::Contains("peak"));
  CHECK(text("one.svg") == text("two.svg"));
}

}  // namespace foretrain::test
