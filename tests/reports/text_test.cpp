#include "reports/result/text.hpp"

#include "reports/measured/accuracy.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

TEST_CASE("A training step reads as expected", "[golden]") {
  const std::string text = to_text(large_step());
  CHECK(text == golden("train.txt", text));
}

TEST_CASE("The ratio of communication to computation is told, and explained when asked for") {
  Result result = large_step();
  result.train()->communication_to_compute = CommunicationRatio{0.25, 0.5};
  const std::string line = "exchanging takes 0.5 of computing; 2·model/(bandwidth·batch·FLOPs) gives 0.25";
  CHECK_THAT(to_text(result), Catch::Contains(line + "\n"));
  CHECK_THAT(to_text(result, {.verbose = true}), Catch::Contains(line + ",\n  as it"));
}

TEST_CASE("Parameter servers: what they wait for, and how stale updates are") {
  Result result = large_step();
  result.train()->parameter_server = eight_workers();
  const std::string text = to_text(result);
  for (const char* words :
       {"Parameter servers: 8 workers, 1 server\n", "1.25 x the mean", "busiest link 37.0 % · busiest server 6.4 %",
        "compute 208 ms · link 77.3 ms · server 13.4 ms", "mean 6.1 · p50 6 · p90 7 · p99 14 · most 14 updates"}) {
    INFO(words);
    CHECK(text.find(words) != std::string::npos);
  }
}

TEST_CASE("Every constant is listed when asked for", "[golden]") {
  const std::string text = to_text(large_step(), {.verbose = true});
  CHECK(text == golden("train_verbose.txt", text));
}

TEST_CASE("A step that does not fit says so, and what would fit", "[golden]") {
  const std::string text = to_text(step_that_does_not_fit());
  CHECK(text == golden("does_not_fit.txt", text));
  CHECK(text.find("DOES NOT FIT") != std::string::npos);
  CHECK(text.find("zero 1 over 2 GPUs would fit") != std::string::npos);
}

TEST_CASE("Collectives, operators and task lists read as expected", "[golden]") {
  const std::string text = to_text(collective()) + "\n" + to_text(matrix_product()) + "\n" + to_text(task_list());
  CHECK(text == golden("other_workloads.txt", text));
}

TEST_CASE("The accuracy of groups reads as expected", "[golden]") {
  const std::vector<Comparison> comparisons = {{"a1", "alpha", "step_time", 1.0, 1.1},
                                               {"a2", "alpha", "step_time", 2.0, 1.9},
                                               {"b1", "beta", "samples_per_second", 100.0, 120.0}};
  const std::vector<FailedCase> failed = {{"c1", "unknown GPU"}, {"c2", "unknown GPU"}, {"c3", "does not divide"}};
  const std::string text = to_text(accuracy_report(comparisons, failed, 0), {.verbose = true});
  CHECK(text == golden("accuracy.txt", text));
}

}  // namespace foretrain::test
