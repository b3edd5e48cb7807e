#include "reports/result/json.hpp"

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

TEST_CASE("Bytes that no integer holds are reported as they are, and read back") {
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

namespace {

void add_checkpoints(Result& result) {
  result.train()->checkpoints = TrainResult::Checkpoints{50,           "asynchronous", Bytes(81e9),   Seconds(0.1),
                                                         Seconds(0.2), Seconds(1.5),   Seconds(1.25), Seconds(1.3)};
}

/// Of a training whose steps last for 90 % of the time.
void add_failures(Result& result) {
  TrainResult::Goodput& goodput = result.train()->goodput.emplace();
  goodput.mtbf = Seconds(10'000.0);
  goodput.every = 14;
  goodput.kinds = {"gpu", "software"};
  goodput.simulated.shares = {.useful = 0.9, .checkpoints = 0.03, .lost = 0.04, .detection = 0.01, .restarts = 0.02};
  goodput.simulated.interruptions = {180.0, 50.0};
  goodput.by_daly = 0.91;
  goodput.intervals = IntervalSearch{
      IntervalChoice{14, 0.9}, IntervalChoice{13, 0.899}, {15, 0.901}, {{1, 0.5}, {13, 0.899}, {14, 0.9}}};
}

/// 33 operators in 11 kernels; the front end's 33 us are less than the device's 308 us.
void add_call(Result& result) {
  ModelCallResult& call = result.train()->execution.emplace();
  call = {ExecutionMode::compiled, 33, 11, 14, 8, Seconds(33e-6), Seconds(308e-6), Bytes(1.81e6)};
}

/// Rare fields of results, and their JSON.
struct Extra {
  void (*add)(Result&);
  std::vector<std::pair<const char*, nlohmann::json>> parts;
};

const std::vector<Extra> extras = {
    {[](Result& result) {
       result.train()->communication_to_compute = CommunicationRatio{0.25, 0.5};
     },
     {{"/communication_to_compute/formula", 0.25},
      {"/communication_to_compute/simulated", 0.5},
      {"/communication_to_compute/formula_is",
       "(2 · gradient bytes / ring bandwidth) / (FLOPs per GPU / peak FLOP/s)"}}},
    {add_checkpoints,
     {{"/checkpoints/every", 50},
      {"/checkpoints/state_bytes", 81e9},
      {"/checkpoints/step_time_s", 1.5},
      {"/checkpoints/mean_step_time_s", 1.25},
      {"/checkpoints/step_time_beside_write_s", 1.3}}},
    {[](Result& result) {
       result.routing = RoutingSpread{"hash", 40, Seconds(1.2), Seconds(1.3), Seconds(1.4)};
     },
     {{"/routing/rule", "hash"}, {"/routing/draws", 40}, {"/routing/p99_s", 1.4}}},
    {[](Result& result) { result.train()->parameter_server = eight_workers(); },
     {{"/parameter_server/workers", 8},
      {"/parameter_server/load_imbalance", 1.25},
      {"/parameter_server/staleness/p99", 14.0},
      {"/parameter_server/bounds_s/link", 0.0773}}},
    {[](Result& result) {  // which the estimate does not know
       result.train()->parameter_server = eight_workers();
       result.train()->parameter_server->staleness.reset();
     },
     {{"/parameter_server/staleness", nullptr}}},
    {[](Result& result) {
       result.train()->shared_fabric = SharedFabric{Seconds(40.0), {{"a neighbour", Seconds(1.5), Seconds(1.2)}}};
     },
     {{"/alone_step_time_s", 40.0},
      {"/jobs/0/scenario", "a neighbour"},
      {"/jobs/0/step_time_s", 1.5},
      {"/jobs/0/alone_step_time_s", 1.2}}},
    {add_failures,
     {{"/failures/goodput", 0.9},
      {"/failures/best/every", 15},
      {"/failures/interruptions/software", 50.0},
      {"/failures/intervals/1/goodput", 0.899}}},
    {[](Result& result) {
       result.train()->bill = TrainResult::Bill{Seconds(2e6), Seconds(3e6), 1.3e6, 1.7e6, 9e5, 5.8e5, 3.2e5};
     },
     {{"/training/time_to_train_s/low", 2e6},
      {"/training/cost/high", 1.7e6},
      {"/training/kwh", 5.8e5},
      {"/training/kg_co2", 3.2e5}}},
    {[](Result& result) {
       result.train()->split = TrainResult::Split{"best", {{"H100", 4, 11}, {"A100", 6, 6}}, Seconds(60.0)};
     },
     {{"/batch_split/rule", "best"}, {"/batch_split/kinds/1/micro_batches", 6}}},
    {add_call,
     {{"/execution/execution", "compiled"},
      {"/execution/operators", 33},
      {"/execution/fused_operators", 14},
      {"/execution/folded_operators", 8},
      {"/execution/device_s", 308e-6},
      {"/execution/intermediate_bytes", 1810000},
      {"/execution/bound", "device"}}}};

}  // namespace

TEST_CASE("What few runs have is a block of their own in JSON, of what it is made of, and read back") {
  const auto plain = nlohmann::json::parse(to_json(large_step()));
  for (const auto& [add, parts] : extras) {
    Result result = large_step();
    add(result);
    const std::string text = to_json(result);
    const auto json = nlohmann::json::parse(text);
    for (const auto& [path, value] : parts) {
      INFO(path);
      CHECK_FALSE(plain.contains(nlohmann::json::json_pointer(path)));
      CHECK(json.at(nlohmann::json::json_pointer(path)) == value);
    }
    CHECK(to_json(result_from_json(text)) == text);
  }
}

TEST_CASE("A number that is not finite is null in JSON, and NaN when read back") {
  Result result = large_step();
  result.train()->mfu = std::numeric_limits<double>::infinity();
  const std::string text = to_json(result);
  CHECK(nlohmann::json::parse(text)["mfu"].is_null());
  CHECK(std::isnan(result_from_json(text).train()->mfu));
}

TEST_CASE("A text that is no result is refused") {
  CHECK_THROWS_AS(result_from_json("{"), ScenarioError);
  CHECK_THROWS_WITH(result_from_json("{}"), Catch::Contains("scenario: key 'scenario' not found; a result as"));
  CHECK_THROWS_WITH(result_from_json(R"({"scenario": "a", "fidelity": "guess"})"),
                    Catch::Contains("fidelity: unknown word \"guess\""));
  const std::string deep = R"({"scenario": "a", "fidelity": "flows", "step_time_s": 1, "samples_per_second": 1,
    "tokens_per_second": 1, "tokens_per_second_per_gpu": 1, "model_flops_per_second_per_gpu": 1, "mfu": 1,
    "breakdown_s": {"compute": "long"}})";
  CHECK_THROWS_WITH(result_from_json(deep), Catch::Contains("breakdown_s.compute: type must be number, but is string"));
}

TEST_CASE("The accuracy of groups has the agreed names in JSON", "[golden]") {
  const std::vector<Comparison> comparisons = {{"a1", "alpha", "step_time", 1.0, 1.1},
                                               {"a2", "alpha", "step_time", 2.0, 1.9}};
  const std::string text = to_json(accuracy_report(comparisons, {{"c1", "unknown GPU"}}, 0)) + "\n";
  CHECK(text == golden("accuracy.json", text));
}

}  // namespace foretrain::test
