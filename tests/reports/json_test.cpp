#include "reports/result/json.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "model/base/error.hpp"
#include "reports/measured/accuracy.hpp"
#include "reports/result/text.hpp"
#include "tests/catch.hpp"
#include "tests/golden.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

TEST_CASE("A training step has the agreed names in JSON", "[golden]") {
  const std::string text = to_json(large_step()) + "\n";
  CHECK(text == golden("train.json", text));
}

TEST_CASE("Collectives, operators and task lists have the agreed names in JSON", "[golden]") {
  const std::string text = to_json({collective(), matrix_product(), task_list()}) + "\n";
  CHECK(text == golden("other_workloads.json", text));
}

TEST_CASE("The ratio of communication to computation stands beside its formula, and is read back") {
  Result result = large_step();
  CHECK_FALSE(nlohmann::json::parse(to_json(result)).contains("communication_to_compute"));
  result.train()->communication_to_compute = CommunicationRatio{0.25, 0.5};
  const auto json = nlohmann::json::parse(to_json(result));
  CHECK(json["communication_to_compute"]["formula"] == 0.25);
  CHECK(json["communication_to_compute"]["simulated"] == 0.5);
  CHECK(json["communication_to_compute"]["formula_is"] == "2·model/(bandwidth·batch·FLOPs)");
  CHECK(result_from_json(to_json(result)).train()->communication_to_compute->simulated == 0.5);
}

TEST_CASE("Bytes that no integer holds are told as they are, and read back") {
  CHECK(whole_number(1.6).dump() == "2");
  CHECK(whole_number(-0x1p62).dump() == "-4611686018427387904");
  CHECK(whole_number(0x1p63).get<double>() == 0x1p63);
  CHECK(whole_number(2.16e20).get<double>() == 2.16e20);
  CHECK(whole_number(std::numeric_limits<double>::infinity()).is_null());
  Result result = large_step();
  result.train()->memory.weights = Bytes(2.16e20);
  CHECK(nlohmann::json::parse(to_json(result))["memory_per_gpu_bytes"]["weights"] == 2.16e20);
  CHECK(result_from_json(to_json(result)).train()->memory.weights == Bytes(2.16e20));
}

TEST_CASE("Checkpoints are a block of their own in JSON, and are read back") {
  Result result = large_step();
  CHECK_FALSE(nlohmann::json::parse(to_json(result)).contains("checkpoints"));
  result.train()->checkpoints = TrainResult::Checkpoints{50,           "asynchronous", Bytes(81e9),   Seconds(0.1),
                                                         Seconds(0.2), Seconds(1.5),   Seconds(1.25), Seconds(1.3)};
  const std::string text = to_json(result);
  const auto json = nlohmann::json::parse(text)["checkpoints"];
  CHECK(json["every"] == 50);
  CHECK(json["state_bytes"] == 81e9);
  CHECK(json["step_time_s"] == 1.5);
  CHECK(json["mean_step_time_s"] == 1.25);
  CHECK(json["step_time_beside_write_s"] == 1.3);
  CHECK(to_json(result_from_json(text)) == text);
}

TEST_CASE("Draws of routes are a block of their own in JSON, and a line in the text") {
  Result result = large_step();
  CHECK_FALSE(nlohmann::json::parse(to_json(result)).contains("routing"));
  CHECK(to_text(result, {}).find("By routes") == std::string::npos);
  result.routing = RoutingSpread{"hash", 40, Seconds(1.2), Seconds(1.3), Seconds(1.4)};
  const auto json = nlohmann::json::parse(to_json(result))["routing"];
  CHECK(json["rule"] == "hash");
  CHECK(json["draws"] == 40);
  CHECK(json["p99_s"] == 1.4);
  CHECK(to_json(result_from_json(to_json(result))) == to_json(result));
  CHECK(to_text(result, {}).find("P50 1.20 s · P90 1.30 s · P99 1.40 s of 40 draws (hash)") != std::string::npos);
}

TEST_CASE("The breakdown in JSON adds up to the step") {
  const auto json = nlohmann::json::parse(to_json(large_step()));
  double sum = 0.0;
  for (const auto& [part, time] : json["breakdown_s"].items()) sum += time.get<double>();
  CHECK(sum == Approx(json["step_time_s"].get<double>()));
}

TEST_CASE("Memory is counted in whole bytes, and fits up to the last one") {
  Result result = step_that_does_not_fit();
  // 14 + 14 + 56 GB = 84 GB.
  result.train()->memory.capacity = Bytes(84e9);
  const auto just_fits = nlohmann::json::parse(to_json(result))["memory_per_gpu_bytes"];
  CHECK(just_fits["total"] == 84'000'000'000);
  CHECK(just_fits["fits"] == true);
  result.train()->memory.capacity = Bytes(84e9 - 1.0);
  CHECK(nlohmann::json::parse(to_json(result))["memory_per_gpu_bytes"]["fits"] == false);
}

TEST_CASE("What is read back from JSON writes the same JSON") {
  for (const Result& result : {large_step(), step_that_does_not_fit(), collective(), matrix_product(), task_list()}) {
    const std::string text = to_json(result);
    CHECK(to_json(result_from_json(text)) == text);
  }
}

TEST_CASE("Parameter servers are a block of their own in JSON, and are read back") {
  Result result = large_step();
  CHECK_FALSE(nlohmann::json::parse(to_json(result)).contains("parameter_server"));
  result.train()->parameter_server = eight_workers();
  const std::string text = to_json(result);
  const auto block = nlohmann::json::parse(text)["parameter_server"];
  CHECK(block["workers"] == 8);
  CHECK(block["load_imbalance"] == 1.25);
  CHECK(block["staleness"]["p99"] == 14.0);
  CHECK(block["bounds_s"]["link"] == 0.0773);
  CHECK(to_json(result_from_json(text)) == text);
  result.train()->parameter_server->staleness.reset();  // the estimate knows none
  CHECK(nlohmann::json::parse(to_json(result))["parameter_server"]["staleness"].is_null());
  CHECK(to_json(result_from_json(to_json(result))) == to_json(result));
}

TEST_CASE("Other jobs on the fabric are listed in JSON and in the text, and are read back") {
  Result result = large_step();
  CHECK_FALSE(nlohmann::json::parse(to_json(result)).contains("jobs"));
  result.train()->shared_fabric = SharedFabric{Seconds(40.0), {{"a neighbour", Seconds(1.5), Seconds(1.2)}}};
  const auto json = nlohmann::json::parse(to_json(result));
  CHECK(json["alone_step_time_s"] == 40.0);
  CHECK(json["jobs"][0]["scenario"] == "a neighbour");
  CHECK(json["jobs"][0]["step_time_s"] == 1.5);
  CHECK(json["jobs"][0]["alone_step_time_s"] == 1.2);
  CHECK(to_json(result_from_json(to_json(result))) == to_json(result));
  // 44 s beside the other job, 40 s alone: a tenth longer.
  CHECK(to_text(result).find("44.0 s  40.0 s  10.0 %") != std::string::npos);
  CHECK(to_text(result).find("25.0 %") != std::string::npos);
}

TEST_CASE("A number that is not finite is null in JSON, and NaN when read back") {
  Result result = large_step();
  result.train()->mfu = std::numeric_limits<double>::infinity();
  const std::string text = to_json(result);
  CHECK(nlohmann::json::parse(text)["mfu"].is_null());
  CHECK(std::isnan(result_from_json(text).train()->mfu));
}

TEST_CASE("A text that is no result is refused") {
  CHECK_THROWS_AS(result_from_json("{"), InternalError);
  CHECK_THROWS_AS(result_from_json("{}"), InternalError);
  CHECK_THROWS_AS(result_from_json(R"({"scenario": "a", "fidelity": "guess"})"), InternalError);
}

TEST_CASE("The accuracy of groups has the agreed names in JSON", "[golden]") {
  const std::vector<Comparison> comparisons = {{"a1", "alpha", "step_time", 1.0, 1.1},
                                               {"a2", "alpha", "step_time", 2.0, 1.9}};
  const std::string text = to_json(accuracy_report(comparisons, {{"c1", "unknown GPU"}}, 0)) + "\n";
  CHECK(text == golden("accuracy.json", text));
}

}  // namespace foretrain::test
