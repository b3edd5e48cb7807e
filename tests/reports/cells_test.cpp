// Every cell of a training step in CSV and in JSON, of a result of which no two values are equal: a column that shows
// another one's value is found.
#include <nlohmann/json.hpp>

#include "model/result.hpp"
#include "reports/result/csv.hpp"
#include "reports/result/json.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

Result all_different() {
  Result result;
  result.scenario = "all different";
  TrainResult& train = result.work.emplace<TrainResult>();
  train.step_time = Seconds(21.0);
  train.samples_per_second = 2.0;
  train.tokens_per_second = 3.0;
  train.tokens_per_second_per_gpu = 4.0;
  train.model_flops_per_second_per_gpu = FlopsPerSecond(5.0);
  train.mfu = 0.5;
  train.breakdown = {Seconds(6.0), Seconds(7.0), Seconds(8.0), Seconds(9.0), Seconds(10.0), Seconds(11.0)};
  train.communication["first"] = {Seconds(12.0), Seconds(13.0)};
  train.communication["second"] = {Seconds(14.0), Seconds(15.0)};
  train.memory = {.weights = Bytes(101.0),
                  .gradients = Bytes(102.0),
                  .optimizer = Bytes(104.0),
                  .activations = Bytes(108.0),
                  .workspace = Bytes(116.0),
                  .capacity = Bytes(1000.0)};
  train.bottleneck = "what bounds it";
  train.time_to_train = Seconds(16.0);
  result.train()->cost_usd = 17.0;
  result.train()->bill = TrainResult::Bill{Seconds(22.0), Seconds(23.0), 24.0, 25.0, 26.0, 27.0, 28.0};
  result.train()->goodput.emplace(TrainResult::Goodput{}).simulated.shares.useful = 0.75;
  result.uncertainty_low = Seconds(18.0);
  result.uncertainty_high = Seconds(19.0);
  return result;
}

std::map<std::string, std::string> cells_of(const Result& result) {
  const std::vector<std::string> cells = predicted_cells(result);
  REQUIRE(cells.size() == predicted_columns().size());
  std::map<std::string, std::string> named;
  for (std::size_t i = 0; i < cells.size(); ++i) named[predicted_columns()[i]] = cells[i];
  return named;
}

}  // namespace

TEST_CASE("Every column of a training step holds its own value") {
  const std::map<std::string, std::string> expected = {{"predicted.step_time_s", "21"},
                                                       {"predicted.samples_per_second", "2"},
                                                       {"predicted.tokens_per_second", "3"},
                                                       {"predicted.mfu", "0.5"},
                                                       {"predicted.compute_s", "6"},
                                                       {"predicted.exposed_communication_s", "7"},
                                                       {"predicted.pipeline_bubble_s", "8"},
                                                       {"predicted.data_stall_s", "9"},
                                                       {"predicted.host_overhead_s", "10"},
                                                       {"predicted.optimizer_s", "11"},
                                                       {"predicted.memory_per_gpu_bytes", "531"},
                                                       {"predicted.fits", "true"},
                                                       {"predicted.time_s", ""},
                                                       {"predicted.bus_bandwidth_bytes_per_second", ""},
                                                       {"predicted.cost_usd", "17"},
                                                       {"predicted.low_s", "18"},
                                                       {"predicted.high_s", "19"},
                                                       {"predicted.time_to_train_s", "16"},
                                                       {"predicted.time_to_train_low_s", "22"},
                                                       {"predicted.time_to_train_high_s", "23"},
                                                       {"predicted.cost_low_usd", "24"},
                                                       {"predicted.cost_high_usd", "25"},
                                                       {"predicted.goodput", "0.75"},
                                                       {"predicted.error", ""}};
  CHECK(cells_of(all_different()) == expected);
  Result full = all_different();
  full.train()->memory.capacity = Bytes(530.0);
  CHECK(cells_of(full).at("predicted.fits") == "false");
}

TEST_CASE("Every column of a collective holds its own value") {
  Result result;
  result.work = CollectiveResult{Seconds(2.0), BytesPerSecond(3.0), BytesPerSecond(4.0), "ring"};
  for (const auto& [name, cell] : cells_of(result)) {
    INFO(name);
    const std::string expected = name == "predicted.time_s"                           ? "2"
                                 : name == "predicted.bus_bandwidth_bytes_per_second" ? "4"
                                                                                      : "";
    CHECK(cell == expected);
  }
}

TEST_CASE("Every key of a training step's JSON holds its own value") {
  const nlohmann::json json = nlohmann::json::parse(to_json(all_different()));
  const std::map<std::string, nlohmann::json> expected = {{"/scenario", "all different"},
                                                          {"/step_time_s", 21.0},
                                                          {"/samples_per_second", 2.0},
                                                          {"/tokens_per_second", 3.0},
                                                          {"/tokens_per_second_per_gpu", 4.0},
                                                          {"/model_flops_per_second_per_gpu", 5.0},
                                                          {"/mfu", 0.5},
                                                          {"/breakdown_s/compute", 6.0},
                                                          {"/breakdown_s/exposed_communication", 7.0},
                                                          {"/breakdown_s/pipeline_bubble", 8.0},
                                                          {"/breakdown_s/data_stall", 9.0},
                                                          {"/breakdown_s/host_overhead", 10.0},
                                                          {"/breakdown_s/optimizer", 11.0},
                                                          {"/communication_s/first/total", 12.0},
                                                          {"/communication_s/first/exposed", 13.0},
                                                          {"/communication_s/second/total", 14.0},
                                                          {"/communication_s/second/exposed", 15.0},
                                                          {"/memory_per_gpu_bytes/weights", 101},
                                                          {"/memory_per_gpu_bytes/gradients", 102},
                                                          {"/memory_per_gpu_bytes/optimizer", 104},
                                                          {"/memory_per_gpu_bytes/activations", 108},
                                                          {"/memory_per_gpu_bytes/workspace", 116},
                                                          {"/memory_per_gpu_bytes/total", 531},
                                                          {"/memory_per_gpu_bytes/capacity", 1000},
                                                          {"/bottleneck", "what bounds it"},
                                                          {"/time_to_train_s", 16.0}};
  for (const auto& [path, value] : expected) {
    INFO(path);
    REQUIRE(json.contains(nlohmann::json::json_pointer(path)));
    CHECK(json.at(nlohmann::json::json_pointer(path)) == value);
  }
}

}  // namespace foretrain::test
