// A SYNTHETIC MACHINE: a GPU that is described, whose kernels and training steps take made-up times, by constants that
// the test chose, with noise, and with one suite that went wrong. No machine measured any of it.

#include "model/job/job.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/fit/synthetic.hpp"
#include "validate/fit/gpu_fit.hpp"

using namespace foretrain;

namespace {

/// Slower in everything than what is published, most of all its host.
const std::map<std::string, double> chosen = {{"streaming.bandwidth_efficiency", 0.55},
                                              {"streaming.kernel_us", 3.2},
                                              {"matmul.fixed_us", 5.0},
                                              {"convolution.tensor_efficiency", 0.62},
                                              {"host.dispatch_us", 40.0},
                                              {"host.compiled_dispatch_us", 28.0},
                                              {"host.step_us", 1500.0},
                                              {"step.kernel_stretch", 1.25},
                                              {"host.launch_gap_us", 2.0}};

Calibration truth() {
  Calibration calibration = load_default_calibration();
  for (const auto& [name, value] : chosen) constant_row(name).field(calibration) = value;
  return calibration;
}

/// The launch suite's records of one gap between kernels: 2 us more in a stream than in a graph.
void add_launches(RawMeasurements& raw) {
  const auto add = [&](const char* what, const char* key, const char* number, double seconds) {
    Record record = synthetic::record("launch", what, {});
    record.parameters = {{"what", what}, {key, number}};
    record.values = {seconds};
    raw.points.push_back({record, {"launch.jsonl", 1, 1}});
    ++raw.suites["launch"].measured;
  };
  add("kernel_back_to_back", "blocks", "1", 3.5e-6);
  add("graph_run", "nodes", "1000", 1.5e-3);
}

RawMeasurements measured() {
  RawMeasurements raw = synthetic::measurements(
      truth(),
      {.suites = {"gemm", "streaming", "convolution", "attention", "steps"}, .noise = 0.01, .bad_suite = "attention"});
  add_launches(raw);
  return raw;
}

/// Mean absolute error of the steps that were held out, as `predict` prices them on the node that the fit describes.
double error_of_held_out_steps(const TemporaryFolder& folder, const RawMeasurements& raw, bool calibrated) {
  double sum = 0.0;
  int count = 0;
  for (const RawPoint* point : raw.of_suite("steps")) {
    if (!point->held_out()) continue;
    std::vector<std::string> keys = {"cluster.node=" + (folder.path() / "node.yaml").string()};
    if (calibrated) keys.push_back("calibration=" + (folder.path() / "calibration.json").string());
    for (const auto& [key, value] : point->record.scenario) keys.push_back(key + "=" + value);
    const Scenario scenario = load_scenario(folder.write("run.yaml", "name: step\n"), keys);
    sum += std::abs(estimate(scenario).time().value() / point->median() - 1.0);
    ++count;
  }
  REQUIRE(count == 6);
  return sum / count;
}

struct Fitted {
  TemporaryFolder folder;
  RawMeasurements raw = measured();
  GpuCalibration fit;

  Fitted() {
    synthetic::write_folder(raw, folder.path() / "raw");
    fit = fit_gpu(read_measurements(folder.path() / "raw"));
    folder.write("calibration.json", to_json(fit));
    folder.write("node.yaml", fit.node);
  }
};

const Fitted& fitted() {
  static const Fitted one;
  return one;
}

const StageTrial& stage(const std::string& name) {
  const auto found = std::ranges::find(fitted().fit.stages, name, &StageTrial::name);
  REQUIRE(found != fitted().fit.stages.end());
  return *found;
}

}  // namespace

TEST_CASE("calibrate --from finds the constants of a synthetic machine within 5 %, those of its host among them") {
  Calibration found = fitted().fit.calibration;
  for (const auto& [name, value] : chosen) {
    INFO(name << ": " << constant_row(name).field(found) << " for " << value);
    CHECK(constant_row(name).field(found) == Approx(value).epsilon(0.05));
  }
}

TEST_CASE("A stage whose points mean nothing is refused: its constants stay published, and that is said") {
  // Times a factor of e to either side: no constants predict the points that a fit has not seen.
  const Calibration published = load_default_calibration();
  CHECK_FALSE(stage("attention").adopted);
  CHECK(fitted().fit.calibration.attention == published.attention);
  for (const RobustConstant& constant : fitted().fit.fitted) CHECK(!constant.name.starts_with("attention."));
  CHECK(std::ranges::any_of(fitted().fit.undetermined,
                            [](const Undetermined& one) { return one.name.starts_with("attention."); }));
  for (const char* kept : {"streaming", "GEMM", "convolution", "training step"}) {
    INFO(kept);
    CHECK(stage(kept).adopted);
    CHECK(stage(kept).fitted < stage(kept).published);
  }
}

TEST_CASE("Held-out steps of a synthetic machine are predicted within 3 %, without calibration 30 % off") {
  const double with = error_of_held_out_steps(fitted().folder, fitted().raw, true);
  const double without = error_of_held_out_steps(fitted().folder, fitted().raw, false);
  INFO("with " << with << ", without " << without);
  CHECK(with < 0.03);
  CHECK(without > 0.30);
  const AccuracyBar& steps = fitted().fit.bars.back();
  CHECK(steps.name == "training steps");
  CHECK(steps.held_out);
  CHECK(steps.points == 6);
  CHECK(steps.mape == Approx(with).epsilon(0.01));
}
