// On SYNTHETIC points: the model's own times with seeded noise (synthetic.hpp).
#include "validate/fit/robust_fit.hpp"

#include "model/cost/operator_cost.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Gpu some_gpu() {
  Gpu gpu;
  gpu.name = "synthetic";
  gpu.compute_capability = 8.9;
  gpu.sms = 100;
  gpu.boost_clock = Hertz(2e9);
  gpu.vector_rate[static_cast<std::size_t>(Precision::fp32)] = FlopsPerSecond(50e12);
  gpu.memory_bandwidth = BytesPerSecond(1e12);
  gpu.memory_latency = Seconds(300e-9);
  gpu.l2_cache = Bytes(32e6);
  gpu.l2_bandwidth = BytesPerSecond(4e12);
  gpu.shared_memory_per_sm = Bytes(100e3);
  return gpu;
}

/// Elementwise kernels of 1 KB to 1 GB: the small ones tell the fixed time, the large ones the bandwidth.
std::vector<Observation> kernels(const Calibration& truth, double noise, std::uint64_t seed, int outlier_every = 0) {
  std::vector<Observation> points;
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0.0, 1.0);
  const Gpu gpu = some_gpu();
  for (int i = 0; i < 60; ++i) {
    Streaming work;
    work.kind = StreamingKind::optimizer;  // nothing of it lies in the L2
    work.read = Bytes(std::exp2(10.0 + i / 3.0));
    work.written = work.read;
    const Operator op{"kernel", work, Precision::fp32, 1};
    Seconds time = operator_cost(op, gpu, truth).device * std::exp(noise * normal(random));
    if (outlier_every > 0 && i % outlier_every == 0) time *= 4.0;
    points.push_back({"kernel", "kernels", time, [op, gpu](const Calibration& calibration) {
                        return operator_cost(op, gpu, calibration).device;
                      }});
  }
  return points;
}

Calibration truth_of(double bandwidth, double fixed_us) {
  Calibration truth = load_default_calibration();
  truth.streaming.bandwidth_efficiency = bandwidth;
  truth.streaming.kernel_us = fixed_us;
  return truth;
}

const std::vector<std::string> both = {"streaming.bandwidth_efficiency", "streaming.kernel_us"};

}  // namespace

TEST_CASE("A fit finds the constants that made the points, within its own standard errors") {
  const Calibration truth = truth_of(0.72, 4.5);
  const RobustFit fit = robust_fit(kernels(truth, 0.02, 7), both, load_default_calibration(), 600);
  REQUIRE(fit.constants.size() == 2);
  CHECK(fit.undetermined.empty());
  for (const RobustConstant& constant : fit.constants) {
    Calibration copy = truth;
    const double right = constant_row(constant.name).field(copy);
    INFO(constant.name << " " << constant.after << " +- " << constant.standard_error);
    // Three standard errors hold 99.7 % of all fits.
    CHECK(std::abs(constant.after - right) < 3.0 * constant.standard_error);
    // Thirty points of 2 % tell each of the two to about 2 % / sqrt(30) = 0.4 %, a little more for the loss.
    CHECK(constant.standard_error / right < 0.012);
    CHECK(constant.standard_error / right > 0.002);
  }
  REQUIRE(fit.covariance.rows() == 2);
  CHECK(fit.covariance(0, 1) == Approx(fit.covariance(1, 0)));
  for (const int i : {0, 1}) {
    CHECK(fit.covariance(i, i) == Approx(std::pow(fit.constants[static_cast<std::size_t>(i)].standard_error, 2)));
  }
}

TEST_CASE("Standard errors are what they say: two of three fits lie within one") {
  // Sixty answers (thirty seeds, two constants). Of a normal distribution 68 % lie within one standard error; the
  // number among sixty has a standard deviation of 3.6, so 31 to 51 is three of these around 41.
  const Calibration truth = truth_of(0.72, 4.5);
  int within = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const RobustFit fit = robust_fit(kernels(truth, 0.03, seed), both, truth, 300);
    REQUIRE(fit.constants.size() == 2);
    for (const RobustConstant& constant : fit.constants) {
      Calibration copy = truth;
      const double right = constant_row(constant.name).field(copy);
      if (std::abs(constant.after - right) < constant.standard_error) ++within;
    }
  }
  CHECK(within >= 31);
  CHECK(within <= 51);
}

TEST_CASE("Points that take four times as long hardly matter") {
  // Every tenth point: a mean of logarithms would be 0.1 x ln 4 = 14 % off.
  const Calibration truth = truth_of(0.72, 4.5);
  const RobustFit fit = robust_fit(kernels(truth, 0.02, 3, 10), both, load_default_calibration(), 600);
  CHECK(fit.calibration.streaming.bandwidth_efficiency == Approx(0.72).epsilon(0.02));
  CHECK(fit.calibration.streaming.kernel_us == Approx(4.5).epsilon(0.02));
}

TEST_CASE("Constants on which no point depends keep their published value, and are named") {
  const Calibration start = load_default_calibration();
  const RobustFit fit = robust_fit(kernels(truth_of(0.72, 4.5), 0.02, 7),
                                   {"streaming.bandwidth_efficiency", "convolution.tensor_efficiency"}, start, 600);
  REQUIRE(fit.undetermined.size() == 1);
  CHECK(fit.undetermined.front().name == "convolution.tensor_efficiency");
  CHECK(fit.calibration.convolution.tensor_efficiency == start.convolution.tensor_efficiency);
}

TEST_CASE("A constant that large kernels hardly show is not determined by them") {
  // Kernels of a millisecond and more: a fixed time of some microseconds is lost in 20 % of noise.
  std::vector<Observation> points = kernels(truth_of(0.72, 4.5), 0.2, 11);
  points.erase(points.begin(), points.begin() + 45);
  const Calibration start = load_default_calibration();
  const RobustFit fit = robust_fit(points, both, start, 600);
  REQUIRE(fit.undetermined.size() == 1);
  CHECK(fit.undetermined.front().name == "streaming.kernel_us");
  CHECK_THAT(fit.undetermined.front().why, Catch::StartsWith("standard error ") && Catch::EndsWith(" %"));
  const double per_cent = std::stod(fit.undetermined.front().why.substr(15));
  CHECK(per_cent > 50.0);  // what is determined at most
  CHECK(per_cent < 9900.0);
  CHECK(fit.calibration.streaming.kernel_us == start.streaming.kernel_us);
}

TEST_CASE("As many points as constants leave nothing to judge an error by, and that is the reason given") {
  const std::vector<Observation> all = kernels(truth_of(0.72, 4.5), 0.02, 13);
  const RobustFit fit = robust_fit({all[2], all[55]}, both, load_default_calibration(), 200);
  REQUIRE_FALSE(fit.undetermined.empty());
  CHECK(fit.undetermined.front().why == "too few measured points");
}

TEST_CASE("No point, one point and points that contradict each other give numbers or nothing") {
  const Calibration truth = truth_of(0.72, 4.5), start = load_default_calibration();
  const RobustFit none = robust_fit({}, both, start, 100);
  CHECK(none.constants.empty());
  CHECK(none.undetermined.size() == 2);

  std::vector<Observation> one = kernels(truth, 0.02, 1);
  one.resize(1);
  const RobustFit single = robust_fit(one, both, start, 100);
  CHECK(single.constants.empty());  // a point is needed for each constant, and one more for the error
  CHECK(single.calibration.streaming.kernel_us == start.streaming.kernel_us);

  // The same kernels, half of them ten times as long: the fit is still finite and sensible.
  std::vector<Observation> halves = kernels(truth, 0.02, 1);
  for (std::size_t i = 0; i < halves.size(); i += 2) halves[i].measured *= 10.0;
  const RobustFit torn = robust_fit(halves, both, start, 300);
  for (const RobustConstant& constant : torn.constants) {
    CHECK(std::isfinite(constant.after));
    CHECK(std::isfinite(constant.standard_error));
  }
  CHECK(torn.calibration.streaming.bandwidth_efficiency >= 0.1);
}

TEST_CASE("Few points tell less than their scatter says: the variance is that of n - p of them") {
  // Every point twice: the same fit. The mean square of what remains is divided by n - p of n, and twice the points
  // have half of the variance: (n - p) / (2 n - p), for six points and two constants 4 / 10.
  const Calibration start = load_default_calibration();
  std::vector<Observation> all = kernels(truth_of(0.72, 4.5), 0.02, 9), few;
  for (const std::size_t i : {2U, 9U, 15U, 45U, 50U, 58U}) few.push_back(all[i]);
  std::vector<Observation> twice = few;
  twice.insert(twice.end(), few.begin(), few.end());
  const RobustFit once = robust_fit(few, both, start, 600), again = robust_fit(twice, both, start, 600);
  REQUIRE(once.constants.size() == 2);
  REQUIRE(again.constants.size() == 2);
  for (const int i : {0, 1}) {
    const auto k = static_cast<std::size_t>(i);
    CHECK(again.constants[k].after == Approx(once.constants[k].after).epsilon(1e-4));
    CHECK(again.covariance(i, i) / once.covariance(i, i) == Approx(0.4).epsilon(0.01));
  }
}
