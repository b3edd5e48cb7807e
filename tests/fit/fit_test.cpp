#include "validate/fit/fit.hpp"

#include "model/base/error.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Every `step`-th row of the shipped tables of GEMMs.
std::vector<FitRow> reduced(std::size_t step) {
  std::vector<FitRow> rows;
  for (const char* table : {"cases_gemm_a100.csv", "cases_gemm_v100_t4.csv"}) {
    const std::vector<Case> all = read_cases(std::string(FORETRAIN_SOURCE_DIR "/scenarios/cases/") + table);
    std::vector<Case> some;
    for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
    for (FitRow& row : fit_rows(some)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

TEST_CASE("Constants that made the measurements are found again") {
  // The measured times are replaced by the model's own under other constants: the fit must return to these.
  Calibration truth = load_default_calibration();
  truth.matmul.fixed_us = 9.0;
  truth.streaming.bandwidth_efficiency = 0.7;
  std::vector<FitRow> rows = reduced(7);
  for (FitRow& row : rows) row.measured = row.predict(truth);
  const FitResult result =
      fit(rows, {"matmul.fixed_us", "streaming.bandwidth_efficiency"}, load_default_calibration(), 400);
  CHECK(result.found.calibration.matmul.fixed_us == Approx(9.0).epsilon(0.02));
  CHECK(result.found.calibration.streaming.bandwidth_efficiency == Approx(0.7).epsilon(0.02));
  for (const PointErrors& error : result.errors) CHECK(error.mape < 0.01);
}

TEST_CASE("A fit never makes the objective worse, and repeats itself") {
  const std::vector<FitRow> rows = reduced(9);
  const std::vector<std::string> constants = default_fit_constants(rows);
  const Calibration start = load_default_calibration();
  const FitResult once = fit(rows, constants, start, 150), again = fit(rows, constants, start, 150);
  REQUIRE(once.found.constants.size() == again.found.constants.size());
  for (std::size_t i = 0; i < once.found.constants.size(); ++i) {
    CHECK(once.found.constants[i].after == again.found.constants[i].after);
  }
  const auto mean = [](const std::vector<PointErrors>& errors) {
    double sum = 0.0;
    for (const PointErrors& error : errors) sum += error.mape;
    return sum / static_cast<double>(errors.size());
  };
  CHECK(mean(once.errors) < mean(errors_of(rows, start)) + 0.005);
}

TEST_CASE("A GPU left out is predicted within 25 % by a fit on the other two") {
  const std::vector<FitRow> rows = reduced(4);
  const std::vector<std::string> constants = default_fit_constants(rows);
  const std::vector<std::string> gpus = gpus_of(rows);
  REQUIRE(gpus.size() == 3);
  for (const std::string& gpu : gpus) {
    INFO(gpu);
    const LeftOut left = leave_out(rows, gpu, constants, load_default_calibration(), 250);
    CHECK(together(left.predicted, [](const PointErrors&) { return true; }).mape < 0.25);
    for (const PointErrors& group : left.fitted.errors) CHECK(group.family != gpu);
    // Its own energies were not searched: they come from other generations' processes.
    REQUIRE_FALSE(left.by_rule.empty());
    for (const RobustConstant& energy : left.by_rule) {
      for (const RobustConstant& searched : left.fitted.found.constants) CHECK(searched.name != energy.name);
    }
  }
}

TEST_CASE("What cannot be fitted is refused") {
  const std::vector<FitRow> rows = reduced(60);
  const Calibration start = load_default_calibration();
  CHECK_THROWS_WITH(fit(rows, {"matmul.tile_los"}, start), Catch::Contains("did you mean matmul.tile_loss?"));
  CHECK_THROWS_WITH(leave_out(rows, "h100", {}, start), Catch::Contains("no case is of the GPU h100"));
  std::vector<FitRow> one = rows;
  std::erase_if(one, [](const FitRow& row) { return row.gpu != "t4"; });
  CHECK_THROWS_WITH(leave_out(one, "t4", {}, start), Catch::Contains("nothing is left to fit"));

  const std::string head = "case,cluster.node,workload.operator.kind,workload.operator.size,measured.time\n";
  CHECK_THROWS_WITH(fit_rows(read_cases_text(head + "a,t4-x1,copy,1 MB,\n", "table.csv")),
                    Catch::Contains("table.csv:2") && Catch::Contains("nothing was measured"));
  CHECK_THROWS_WITH(fit_rows(read_cases_text(
                        "case,cluster.node,workload.collective.operation,workload.collective.size,measured.time\n"
                        "a,dgx-h100,all_reduce,1 MB,1 us\n",
                        "table.csv")),
                    Catch::Contains("this case is no operator"));
}
