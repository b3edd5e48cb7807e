#include "model/cost/measured_matmul.hpp"

#include "tests/catch.hpp"
#include "tests/cost/machines.hpp"

using namespace foretrain;
using foretrain::test::Machine;
using foretrain::test::machine;

namespace {

/// A100 with rows measured at `factors` times the model's time.
struct Measured {
  std::int64_t m, n, k;
  double factor;
};
Machine with_rows(const std::vector<Measured>& rows) {
  Machine m = machine("dgx-a100-80gb");
  for (const Measured& row : rows) {
    const Seconds model = m.time(Matmul{.m = row.m, .n = row.n, .k = row.k}, Precision::fp16);
    MeasuredMatmul measured;
    measured.gpu = m.gpu.name;
    measured.precision = Precision::fp16;
    measured.m = row.m;
    measured.n = row.n;
    measured.k = row.k;
    measured.time = model * row.factor;
    m.calibration.measured_matmuls.push_back(measured);
  }
  adopt_measured_matmuls(m.calibration, m.gpu);
  return m;
}

double factor(const Machine& m, std::int64_t rows, std::int64_t columns, std::int64_t depth,
              Precision precision = Precision::fp16) {
  const Matmul work{.m = rows, .n = columns, .k = depth};
  return m.time(work, precision) / machine("dgx-a100-80gb").time(work, precision);
}

}  // namespace

TEST_CASE("At a measured shape the time is the measured one; two measurements of it give their geometric mean") {
  CHECK(factor(with_rows({{4096, 4096, 4096, 1.3}, {2048, 4096, 4096, 0.7}}), 4096, 4096, 4096) == Approx(1.3));
  CHECK(factor(with_rows({{512, 512, 512, 2.0}, {512, 512, 512, 0.5}}), 512, 512, 512) == Approx(1.0));
}

TEST_CASE("Half-way between two rows that agree, their factor counts more than the model") {
  // Rows at 0.2 in the logarithm on both sides: w = (0.8 / 0.2)² = 16 each, so the exponent is 32 / 33 of theirs.
  const auto side = [](double distance) {
    return static_cast<std::int64_t>(std::llround(4096.0 * std::exp(distance)));
  };
  const Machine m = with_rows({{side(0.2), 4096, 4096, 1.2}, {side(-0.2), 4096, 4096, 1.2}});
  CHECK(factor(m, 4096, 4096, 4096) == Approx(std::pow(1.2, 32.0 / 33.0)).epsilon(1e-3));
}

TEST_CASE("Beyond a factor e in the sizes the model stands alone, and so it does for other formats") {
  const Machine m = with_rows({{4096, 4096, 4096, 1.5}});
  CHECK(factor(m, 4096 * 3, 4096, 4096) == Approx(1.0));
  CHECK(factor(m, 4096, 4096, 4096 / 3) == Approx(1.0));
  CHECK(factor(m, 4096, 4096, 4096, Precision::fp32) == Approx(1.0));
}

TEST_CASE("The factor is continuous: one row or column more changes it by little") {
  const Machine m = with_rows({{4000, 4000, 4000, 1.5}, {6000, 4000, 4000, 0.8}, {4000, 4000, 5000, 1.1}});
  double before = factor(m, 1000, 4000, 4000);
  for (std::int64_t rows = 1000; rows < 20000; rows += 10) {
    const double now = factor(m, rows, 4000, 4000);
    INFO(rows);
    CHECK(std::abs(std::log(now / before)) < 0.02);
    before = now;
  }
}

TEST_CASE("Rows of another GPU are dropped") {
  Machine m = machine("dgx-a100-80gb");
  MeasuredMatmul row;
  row.gpu = "t4";
  row.time = Seconds(1.0);
  m.calibration.measured_matmuls.push_back(row);
  adopt_measured_matmuls(m.calibration, m.gpu);
  CHECK(m.calibration.measured_matmuls.empty());
}

TEST_CASE("No product is faster than the peak with 15 % to spare, a batch of them neither") {
  const Machine& m = machine("dgx-a100-80gb");
  MeasuredMatmul row;
  row.precision = Precision::fp16;
  row.m = 4000;
  row.n = 5000;
  row.k = 1000;
  // 40 GFLOP at 312 TFLOP/s, and 15 % more.
  CHECK(least_possible_time(row, m.gpu).value() == Approx(40e9 / (1.15 * 312e12)).epsilon(1e-3));
  row.batch = 16;
  CHECK(least_possible_time(row, m.gpu).value() == Approx(16 * 40e9 / (1.15 * 312e12)).epsilon(1e-3));
}

TEST_CASE("Products of another number of matrices are as far away as their number says") {
  // A row of eight products, asked for eight and for eight times e^0.5 ≈ 13: at distance d = ln(13 / 8) the weight is
  // ((1 - d) / d)².
  Machine m = machine("dgx-a100-80gb");
  const Matmul eight{.batch = 8, .m = 512, .n = 512, .k = 512}, thirteen{.batch = 13, .m = 512, .n = 512, .k = 512};
  const Seconds model = m.time(eight, Precision::fp16), other = m.time(thirteen, Precision::fp16);
  MeasuredMatmul row;
  row.gpu = m.gpu.name;
  row.precision = Precision::fp16;
  row.batch = 8;
  row.m = row.n = row.k = 512;
  row.time = 2.0 * model;
  m.calibration.measured_matmuls = {row};
  adopt_measured_matmuls(m.calibration, m.gpu);
  CHECK(m.time(eight, Precision::fp16) / model == Approx(2.0));
  const double d = std::log(13.0 / 8.0), weight = std::pow((1.0 - d) / d, 2.0);
  CHECK(m.time(thirteen, Precision::fp16) / other == Approx(std::pow(2.0, weight / (weight + 1.0))));
}
