#include "validate/fit/gpu_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/statistics.hpp"
#include "model/cost/measured_matmul.hpp"

namespace foretrain {

namespace {

constexpr double least_disturbance = 0.4;  // of the logarithm

/// Products that were fitted, but for those too far from the fit to be anything but a disturbance. A table is exact
/// where it was measured, and would carry that on to its neighbours.
std::vector<MeasuredMatmul> table_of(const std::vector<PredictedPoint>& points, const std::string& name, const Gpu& gpu,
                                     const Calibration& calibration) {
  // Products that power would slow down in a step are no guide if they were measured faster than that.
  const auto slowed_by_power = [&](PredictedPoint point) {
    const Seconds time = predicted_time(point, calibration);
    point.scenario.cluster.node.gpu.board_power_watts = gpu.board_power_watts;
    return predicted_time(point, calibration) > 1.01 * time;
  };
  std::vector<double> distances;
  for (const PredictedPoint& point : points) {
    if (!point.held_out && family_of(point) == "matmul") {
      distances.push_back(std::abs(std::log(predicted_time(point, calibration) / point.measured)));
    }
  }
  if (distances.empty()) return {};
  const double most = std::max(least_disturbance, 5.0 * quantile(distances, 0.8) / four_of_five);
  std::vector<MeasuredMatmul> rows;
  for (const PredictedPoint& point : points) {
    if (point.held_out || !point.op) continue;
    const auto* work = std::get_if<Matmul>(&point.op->op.work);
    if (work == nullptr || work->accumulate || work->accumulate_fp32 || is_sustained(point)) continue;
    if (std::abs(std::log(predicted_time(point, calibration) / point.measured)) > most) continue;
    if (slowed_by_power(point)) continue;
    rows.push_back({.gpu = name,
                    .precision = point.op->op.precision,
                    .batch = work->batch,
                    .m = work->m,
                    .n = work->n,
                    .k = work->k,
                    .time = point.measured / static_cast<double>(point.op->repeat),
                    .transpose_a = work->transpose_a,
                    .transpose_b = work->transpose_b,
                    .log_residual = 0.0,
                    .log_sizes = {},
                    .where = {}});
  }
  return rows;
}

double mape_of_products(const std::vector<PredictedPoint>& points, const Calibration& calibration) {
  double sum = 0.0;
  int count = 0;
  for (const PredictedPoint& point : points) {
    if (!point.held_out || family_of(point) != "matmul") continue;
    sum += std::abs(predicted_time(point, calibration) / point.measured - 1.0);
    ++count;
  }
  return count == 0 ? -1.0 : sum / count;
}

}  // namespace

Calibration with_table(Calibration calibration, const std::vector<MeasuredMatmul>& rows, const Gpu& gpu) {
  calibration.measured_matmuls = rows;
  adopt_measured_matmuls(calibration, gpu);
  return calibration;
}

void keep_table_if_it_helps(const std::vector<PredictedPoint>& points, const Gpu& gpu, GpuCalibration& result) {
  std::vector<MeasuredMatmul> table = table_of(points, result.gpu, gpu, result.calibration);
  const std::size_t impossible =
      std::erase_if(table, [&](const MeasuredMatmul& row) { return row.time < least_possible_time(row, gpu); });
  if (impossible > 0) {
    result.not_understood.push_back(
        fmt::format("gemm: {} products took less time than {}'s peak allows, as the hardware file states it",
                    impossible, gpu.name));
  }
  if (table.empty()) return;
  const double without = mape_of_products(points, result.calibration);
  if (without < 0.0) {
    result.matmul_note = "no product was held out to test the table of measured ones on: it is left out";
    return;
  }
  const double with = mape_of_products(points, with_table(result.calibration, table, gpu));
  const bool helps = with <= without;
  result.matmul_note =
      fmt::format("products held out: {:.1f} % off by the model alone, {:.1f} % beside {} measured ones{}",
                  without * 100.0, with * 100.0, table.size(), helps ? "" : ": these are left out");
  if (helps) result.measured_matmuls = std::move(table);
}

}  // namespace foretrain
