// From folders of SYNTHETIC measurements (synthetic.hpp) to calibrations that predict.
#include "validate/fit/gpu_fit.hpp"

#include <cmath>
#include <map>

#include "model/job/calibrated_uncertainty.hpp"
#include "model/job/job.hpp"
#include "model/scenario/calibration_reader.hpp"
#include "model/scenario/load.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/fit/synthetic.hpp"
#include "validate/fit/constant_row.hpp"

using namespace foretrain;

namespace {

Calibration chosen_truth() {
  Calibration truth = load_default_calibration();
  truth.streaming.bandwidth_efficiency = 0.78;
  truth.streaming.kernel_us = 2.2;
  truth.matmul.fixed_us = 3.4;
  truth.matmul.tile_latencies = 8.0;
  truth.convolution.tensor_efficiency = 0.7;
  return truth;
}

const GpuCalibration& fitted() {
  static const GpuCalibration result = [] {
    synthetic::Design design;
    design.suites = {"gemm", "streaming", "convolution"};
    design.outlier_every = 23;
    return fit_gpu(synthetic::measurements(chosen_truth(), design));
  }();
  return result;
}

const RobustConstant* find(const GpuCalibration& fit, const std::string& name) {
  for (const auto& [constant, source] : fit.fitted) {
    if (constant.name == name) return &constant;
  }
  return nullptr;
}

/// An operator on the synthetic machine as a scenario, with a calibration file or without.
Scenario scenario_of(const TemporaryFolder& folder, const GpuCalibration& fit, const std::string& calibration) {
  folder.write("node.yaml", readable_yaml(fit.node));
  std::string text =
      "cluster: { node: node.yaml }\n"
      "workload: { operator: { kind: matmul, m: 3000, n: 3000, k: 3000, precision: bf16 } }\n";
  if (!calibration.empty()) text += "calibration: " + calibration + "\n";
  return load_scenario(folder.write("run.yaml", text));
}

TEST_CASE("Products faster than the GPU's peak allows do not get into the calibration, which loads") {
  // A wrong description of an unknown GPU, or a clock that ran backward: everything a thousand times too fast.
  RawMeasurements raw = synthetic::measurements(chosen_truth(), {.suites = {"gemm"}});
  for (RawPoint& point : raw.points) {
    for (double& value : point.record.values) value *= 1e-3;
  }
  const GpuCalibration fit = fit_gpu(raw);
  const TemporaryFolder folder;
  folder.write("calibration.json", to_json(fit));
  CHECK_NOTHROW(scenario_of(folder, fit, "calibration.json"));
}

}  // namespace

TEST_CASE("The fit of an unknown GPU finds the constants that made its measurements") {
  const GpuCalibration& fit = fitted();
  CHECK_FALSE(fit.known);
  CHECK(fit.gpu == "synthetic-5000");
  for (const char* name : {"streaming.bandwidth_efficiency", "streaming.kernel_us", "matmul.fixed_us",
                           "matmul.tile_latencies", "convolution.tensor_efficiency"}) {
    INFO(name);
    const RobustConstant* constant = find(fit, name);
    REQUIRE(constant != nullptr);
    Calibration truth = chosen_truth();
    const double right = constant_row(name).field(truth);
    INFO(constant->after << " +- " << constant->standard_error << " for " << right);
    // Four standard errors, and 5 % for what the kinks of the tile search leave.
    CHECK(std::abs(constant->after - right) < 4.0 * constant->standard_error + 0.05 * right);
    // The published value is farther away than that: the fit has moved.
    CHECK(std::abs(constant->after - right) < std::abs(constant->before - right));
  }
}

TEST_CASE("Points held out are predicted within the noise, and were not fitted") {
  // Noise of 2 % has a mean absolute value of 0.8 x 2 % = 1.6 %; products add what neighbours measured with noise of
  // their own. Every 23rd point was made three times as long, an error of -67 %, and is counted apart.
  std::map<std::string, std::pair<double, int>> held_out;
  int disturbed = 0;
  for (const PointPair& pair : fitted().pairs) {
    const double error = std::abs(pair.predicted / pair.measured - 1.0);
    if (error > 0.4) ++disturbed;
    if (!pair.held_out || error > 0.4) continue;
    held_out[pair.family].first += error;
    ++held_out[pair.family].second;
  }
  CHECK(disturbed == static_cast<int>(fitted().pairs.size() + 21) / 23);
  CHECK(held_out.size() == 3);
  for (const auto& [family, sum] : held_out) {
    INFO(family);
    CHECK(sum.first / sum.second < 0.03);
  }
  // The spread is a quantile that a few outliers do not move.
  CHECK(fitted().spread.at("streaming") < 0.045);
  CHECK(fitted().spread.at("streaming") > 0.008);
}

TEST_CASE("What was not measured stays published and is listed") {
  const GpuCalibration& fit = fitted();
  const auto listed = [&](const std::string& name) {
    return std::any_of(fit.undetermined.begin(), fit.undetermined.end(),
                       [&](const Undetermined& one) { return one.name == name; });
  };
  CHECK(listed("attention.softmax_instructions"));
  CHECK(listed("collective.launch_us"));
  CHECK(listed("matmul.vector_efficiency") != (find(fit, "matmul.vector_efficiency") != nullptr));
  CHECK(fit.calibration.attention.softmax_instructions == load_default_calibration().attention.softmax_instructions);
}

TEST_CASE("Suites that are missing or failed, a single row, and nothing at all give a calibration") {
  synthetic::Design design;
  design.suites = {"streaming"};
  RawMeasurements raw = synthetic::measurements(chosen_truth(), design);
  SECTION("one suite") {
    const GpuCalibration fit = fit_gpu(raw);
    CHECK(find(fit, "streaming.bandwidth_efficiency") != nullptr);
    CHECK(fit.bars.front().points == 0);  // no products
  }
  SECTION("one row") {
    raw.points.resize(1);
    CHECK(fit_gpu(raw).fitted.empty());
  }
  SECTION("nothing was measured") {
    raw.points.clear();
    raw.suites["gemm"].failed = 12;
    const GpuCalibration fit = fit_gpu(raw);
    CHECK(fit.fitted.empty());
    CHECK(fit.errors.empty());
    const YamlNode document = parse_yaml(to_json(fit), "calibration.json");
    CHECK(read_calibration(Field(document, "")).calibrated->fitted.empty());
  }
  SECTION("records that no reader understands are listed, and the others fitted") {
    raw.points.front().record.scenario["workload.operator.kind"] = "telepathy";
    raw.points[1].record.scenario["workload.operator.elements"] = "none";
    const GpuCalibration fit = fit_gpu(raw);
    CHECK(fit.not_understood.size() == 2);
    CHECK(find(fit, "streaming.bandwidth_efficiency") != nullptr);
  }
}

TEST_CASE("The calibration file gives the fit's constants, table and covariance back") {
  const GpuCalibration& fit = fitted();
  const YamlNode document = parse_yaml(to_json(fit), "calibration.json");
  Calibration read = read_calibration(Field(document, ""));
  for (const auto& [constant, source] : fit.fitted) {
    INFO(constant.name);
    CHECK(constant_row(constant.name).field(read) == Approx(constant.after).epsilon(1e-5));
  }
  CHECK(read.measured_matmuls.size() == fit.measured_matmuls.size());
  REQUIRE(read.fitted);
  CHECK(read.fitted->names == fit.covariance_names);
  CHECK(read.fitted->covariance[0][0] == Approx(fit.covariance[0][0]).epsilon(1e-5));
  // Every constant that was not fitted is the base's.
  CHECK(read.host.dispatch_us == load_default_calibration().host.dispatch_us);
  CHECK(to_json(fit) == to_json(fit));
}

TEST_CASE("An unknown GPU is predicted from its folder alone, and its uncertainty comes from the fit") {
  const TemporaryFolder folder;
  const GpuCalibration& fit = fitted();
  folder.write("calibration.json", to_json(fit));
  const Scenario scenario = scenario_of(folder, fit, "calibration.json");
  CHECK(scenario.calibration.warnings.empty());
  Result result = estimate(scenario);
  set_calibrated_uncertainty(scenario, result);
  // The truth's time of the same product; 2 % of noise, of which the fit averages most away.
  Scenario true_one = scenario_of(folder, fit, "");
  true_one.calibration = chosen_truth();
  const Seconds right = estimate(true_one).time();
  CHECK(result.time() / right == Approx(1.0).epsilon(0.04));
  // Not the published 15 %, but about 1.28 x the spread of the products.
  const double width = result.uncertainty_high / result.time() - 1.0;
  CHECK(width < 0.10);
  CHECK(width > 1.2 * fit.spread.at("matmul"));
  CHECK(result.uncertainty_low < right);
  CHECK(result.uncertainty_high > right);
}

TEST_CASE("On another GPU only what carries over is used, and that is said") {
  const TemporaryFolder folder;
  folder.write("calibration.json", to_json(fitted()));
  const auto on = [&](const std::string& node) {
    return load_scenario(folder.write("other.yaml", "cluster: { node: " + node +
                                                        " }\n"
                                                        "workload: { operator: { kind: matmul, m: 512, n: 512, k: 512, "
                                                        "precision: bf16 } }\ncalibration: calibration.json\n"));
  };
  const Calibration published = load_default_calibration();
  // RTX 4090 is of the same generation (Ada): its kernels' constants carry over, measured products do not.
  const Scenario same = on("rtx4090-x1");
  CHECK(same.calibration.matmul.fixed_us != published.matmul.fixed_us);
  CHECK(same.calibration.measured_matmuls.empty());
  REQUIRE(same.calibration.warnings.size() == 1);
  CHECK(same.calibration.warnings.front().find("measured on synthetic-5000, this GPU is rtx-4090") !=
        std::string::npos);
  // H100 is of another: everything but the host's returns to the base, and so does the uncertainty.
  const Scenario other = on("dgx-h100");
  CHECK(other.calibration.matmul.fixed_us == published.matmul.fixed_us);
  CHECK_FALSE(other.calibration.fitted);
  Result result = estimate(other);
  REQUIRE(result.warnings.size() == 1);
  const Seconds high = result.uncertainty_high;
  set_calibrated_uncertainty(other, result);
  CHECK(result.uncertainty_high == high);
}
