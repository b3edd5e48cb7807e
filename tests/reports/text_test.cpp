#include "reports/result/text.hpp"

#include "model/scenario/load/load.hpp"
#include "reports/measured/accuracy.hpp"
#include "reports/result/json.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

TEST_CASE("A training step reads as expected", "[golden]") {
  const std::string text = to_text(large_step());
  CHECK(text == golden("train.txt", text));
}

TEST_CASE("The ratio of communication to computation is reported, and explained when asked for") {
  Result result = large_step();
  result.train()->communication_to_compute = CommunicationRatio{0.25, 0.5};
  const std::string line = "synchronisation/compute 0.5 (at peak rates 0.25)";
  CHECK_THAT(to_text(result), Catch::Contains(line + "\n"));
  CHECK_THAT(to_text(result, TextOptions{.verbose = true}), Catch::Contains(line + ". At peak rates:"));
}

TEST_CASE("What few runs have is reported where they have it") {
  Result result = large_step();
  result.train()->parameter_server = eight_workers();
  // 44 s beside the other job, 40 s alone: a tenth longer.
  result.train()->shared_fabric = SharedFabric{Seconds(40.0), {{"a neighbour", Seconds(1.5), Seconds(1.2)}}};
  const std::string text = to_text(result), plain = to_text(large_step());
  for (const char* words :
       {"Parameter servers: 8 workers, 1 server\n", "largest shard 1.25 x the mean",
        "busiest link 37.0 % · busiest server CPU 6.4 %",
        "worker compute 208 ms · server link 77.3 ms · server CPU 13.4 ms",
        "mean 6.1 · P50 6 · P90 7 · P99 14 · max 14 updates", "44.0 s  40.0 s    10.0 %", "25.0 %"}) {
    INFO(words);
    CHECK(text.find(words) != std::string::npos);
    CHECK(plain.find(words) == std::string::npos);
  }
}

TEST_CASE("Calls of a model are reported with what they are made of and wait for") {
  Result result = task_list();
  ModelCallResult& call = result.tasks()->calls["net"];
  call = {ExecutionMode::compiled, 33, 11, 14, 8, Seconds(33e-6), Seconds(308e-6), Bytes(1.81e6)};
  const std::string text = to_text(result);
  CHECK_THAT(text,
             Catch::Contains("net: 33 operators in 11 kernels, 14 fused, 8 folded; intermediate results 1.81 MB"));
  CHECK_THAT(text, Catch::Contains("net  compiled   33.0 us  308 us  device"));
}

TEST_CASE("Every constant is listed when asked for", "[golden]") {
  const std::string text = to_text(large_step(), TextOptions{.verbose = true});
  CHECK(text == golden("train_verbose.txt", text));
}

TEST_CASE("A step that does not fit says so, and what would fit", "[golden]") {
  const std::string text = to_text(step_that_does_not_fit());
  CHECK(text == golden("does_not_fit.txt", text));
}

TEST_CASE("Collectives, operators and task lists read as expected", "[golden]") {
  const std::string text = to_text(collective()) + "\n" + to_text(matrix_product()) + "\n" + to_text(task_list());
  CHECK(text == golden("other_workloads.txt", text));
}

TEST_CASE("the communication table says by which algorithm, named or chosen") {
  const auto predicted = [](std::vector<std::string> changes) {
    return estimate(load_scenario("gpt2-xl-dgx-a100", std::move(changes)));
  };
  const auto gradients = [](const Result& result) { return result.train()->communication.at("gradient all-reduce"); };
  const Result named = predicted({});  // by ring, as the run says
  CHECK(gradients(named).algorithm == "ring");
  CHECK(gradients(predicted({"plan.sync.algorithm=naive"})).algorithm == "naive");
  CHECK(gradients(predicted({"plan.sync.algorithm=auto"})).algorithm.starts_with("ring/"));
  // Between tensor ranks of one node nobody named anything: the library's choice, of each size of message.
  const Result divided = estimate(load_scenario("gpt3-175b-1024-a100"));
  CHECK(divided.train()->communication.at("collectives inside layers").algorithm.find('/') != std::string::npos);
  CHECK(to_text(named).find("  ring\n") != std::string::npos);
  CHECK(to_json(named).find(R"("algorithm": "ring")") != std::string::npos);
}

}  // namespace foretrain::test
