#include "model/cost/measured_matmul.hpp"

#include <cmath>

#include "model/cost/kernels.hpp"

namespace foretrain {
namespace {

double squared_log_ratio(std::int64_t a, std::int64_t b) {
  const double distance = std::log(static_cast<double>(a) / static_cast<double>(b));
  return distance * distance;
}

// Operands that lie the other way round are read by other kernels: as far apart as sizes that differ by a factor 1.65.
constexpr double squared_transposition = 0.25;

double squared_distance(const Matmul& work, const MeasuredMatmul& row) {
  const double layout = squared_transposition * ((work.transpose_a != row.transpose_a ? 1.0 : 0.0) +
                                                 (work.transpose_b != row.transpose_b ? 1.0 : 0.0));
  return layout + squared_log_ratio(work.batch, row.batch) + squared_log_ratio(work.m, row.m) +
         squared_log_ratio(work.n, row.n) + squared_log_ratio(work.k, row.k);
}

}  // namespace

void adopt_measured_matmuls(Calibration& calibration, const Gpu& gpu) {
  std::vector<MeasuredMatmul> rows;
  rows.swap(calibration.measured_matmuls);  // the model alone
  std::erase_if(rows, [&](const MeasuredMatmul& row) { return row.gpu != gpu.name; });
  for (MeasuredMatmul& row : rows) {
    const Matmul work{.batch = row.batch,
                      .m = row.m,
                      .n = row.n,
                      .k = row.k,
                      .transpose_a = row.transpose_a,
                      .transpose_b = row.transpose_b};
    row.log_residual = std::log(row.time / matmul_time(work, row.precision, gpu, calibration).device);
  }
  calibration.measured_matmuls = std::move(rows);
}

double measured_factor(const Matmul& work, Precision precision, const Calibration& calibration) {
  double weights = 0.0, sum = 0.0;
  double here = 0.0;  // rows of this very shape: their mean
  int exact = 0;
  for (const MeasuredMatmul& row : calibration.measured_matmuls) {
    if (row.precision != precision) continue;
    const double squared = squared_distance(work, row);
    if (squared >= 1.0) continue;
    if (squared == 0.0) {
      here += row.log_residual;
      ++exact;
      continue;
    }
    const double distance = std::sqrt(squared);
    const double weight = (1.0 - distance) * (1.0 - distance) / squared;
    weights += weight;
    sum += weight * row.log_residual;
  }
  return std::exp(exact > 0 ? here / exact : sum / (weights + 1.0));
}

}  // namespace foretrain
