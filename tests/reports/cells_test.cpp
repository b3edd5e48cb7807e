// Every cell of a training step in CSV and in JSON, of a result of which no two values are equal: a column that shows
// another one's value is found.

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

/// The columns that say something: "step_time_s=21 …".
std::string cells_of(const Result& result) {
  const std::vector<std::string> cells = predicted_cells(result);
  REQUIRE(cells.size() == predicted_columns().size());
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i].empty()) text += predicted_columns()[i].substr(10) + "=" + cells[i] + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("Every column of a training step holds its own value") {
  CHECK(cells_of(all_different()) ==
        "step_time_s=21 samples_per_second=2 tokens_per_second=3 mfu=0.5 compute_s=6 "
        "exposed_communication_s=7 pipeline_bubble_s=8 data_stall_s=9 "
        "host_overhead_s=10 optimizer_s=11 memory_per_gpu_bytes=531 fits=true "
        "cost_usd=17 low_s=18 high_s=19 time_to_train_s=16 time_to_train_low_s=22 "
        "time_to_train_high_s=23 cost_low_usd=24 cost_high_usd=25 goodput=0.75 ");
  Result full = all_different();
  full.train()->memory.capacity = Bytes(530.0);
  CHECK_THAT(cells_of(full), Catch::Contains("fits=false"));
}

TEST_CASE("Every column of a collective holds its own value, one that failed why") {
  Result result;
  result.work = CollectiveResult{Seconds(2.0), BytesPerSecond(3.0), BytesPerSecond(4.0), "ring"};
  CHECK(cells_of(result) == "time_s=2 bus_bandwidth_bytes_per_second=4 ");
  CHECK(kind_of_column("predicted.mfu") == CellKind::number);
  CHECK(kind_of_column("predicted.fits") == CellKind::flag);
  CHECK(kind_of_column("plan.tensor") == CellKind::text);
  CHECK(kind_of_column(predicted_columns().back()) == CellKind::text);
  CHECK(failed_cells("why").back() == "why");
  CHECK(failed_cells("why").size() == predicted_columns().size());
}

}  // namespace foretrain::test
