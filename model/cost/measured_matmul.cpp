#include "model/cost/measured_matmul.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/number.hpp"
#include "model/cost/kernels.hpp"

namespace foretrain {
namespace {

LogSizes log_sizes(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {std::log(number(batch)), std::log(number(m)), std::log(number(n)), std::log(number(k))};
}

// Operands that lie the other way round are read by other kernels: as far apart as sizes that differ by a factor 1.65.
double squared_transposition(const Matmul& work, const MeasuredMatmul& row) {
  constexpr double one = 0.25;
  return (work.transpose_a != row.transpose_a ? one : 0.0) + (work.transpose_b != row.transpose_b ? one : 0.0);
}

double squared_distance(const LogSizes& a, const LogSizes& b) {
  const double batch = a.batch - b.batch, m = a.m - b.m, n = a.n - b.n, k = a.k - b.k;
  return batch * batch + m * m + n * n + k * k;
}

bool before(const MeasuredMatmul& a, const MeasuredMatmul& b) {
  return a.precision != b.precision ? a.precision < b.precision : a.log_sizes.m < b.log_sizes.m;
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
    row.log_sizes = log_sizes(row.batch, row.m, row.n, row.k);
    row.log_residual = std::log(row.time / kernel_time(work, row.precision, 1, gpu, calibration).device);
  }
  std::stable_sort(rows.begin(), rows.end(), before);
  calibration.measured_matmuls = std::move(rows);
}

Seconds least_possible_time(const MeasuredMatmul& row, const Gpu& gpu) {
  constexpr double beyond_peak = 1.15;
  const Flops work = 2.0 * number(row.batch) * number(row.m) * number(row.n) * number(row.k) * Flops(1.0);
  return work / (beyond_peak * gpu.matrix_rate(row.precision));
}

double measured_factor(const Matmul& work, Precision precision, const Calibration& calibration) {
  const LogSizes sizes = log_sizes(work.batch, work.m, work.n, work.k);
  double weights = 0.0, sum = 0.0;
  double here = 0.0;  // rows of this very shape: their mean
  int exact = 0;
  MeasuredMatmul first;  // with an m at most a factor e smaller
  first.precision = precision;
  first.log_sizes.m = sizes.m - 1.0;
  const auto& rows = calibration.measured_matmuls;
  for (auto row = std::lower_bound(rows.begin(), rows.end(), first, before); row != rows.end(); ++row) {
    if (row->precision != precision || row->log_sizes.m > sizes.m + 1.0) break;
    const double squared = squared_distance(sizes, row->log_sizes) + squared_transposition(work, *row);
    if (squared >= 1.0) continue;
    if (squared == 0.0) {
      here += row->log_residual;
      ++exact;
      continue;
    }
    const double distance = std::sqrt(squared);
    const double weight = (1.0 - distance) * (1.0 - distance) / squared;
    weights += weight;
    sum += weight * row->log_residual;
  }
  return std::exp(exact > 0 ? here / exact : sum / (weights + 1.0));
}

}  // namespace foretrain
