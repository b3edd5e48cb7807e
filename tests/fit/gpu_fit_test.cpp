// From folders of SYNTHETIC measurements (synthetic.hpp) to calibrations that predict.
#include "validate/fit/gpu_fit.hpp"

#include "model/cost/power.hpp"
#include "model/job/calibrated_uncertainty.hpp"
#include "model/job/job.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/fit/synthetic.hpp"

using namespace foretrain;

namespace {

Calibration chosen_truth() {
  Calibration truth = load_default_calibration();
  truth.streaming.bandwidth_efficiency = 0.78;
  truth.streaming.kernel_us = 2.2;
  truth.matmul.fixed_us = 3.4;
  truth.matmul.tile_latencies = 3.0;
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
  for (const RobustConstant& constant : fit.fitted) {
    if (constant.name == name) return &constant;
  }
  return nullptr;
}

/// An operator on the synthetic machine as a scenario, with a calibration file or without.
Scenario scenario_of(const TemporaryFolder& folder, const GpuCalibration& fit, const std::string& calibration) {
  folder.write("node.yaml", fit.node);
  std::string text =
      "cluster: { node: node.yaml }\n"
      "workload: { operator: { kind: matmul, m: 3000, n: 3000, k: 3000, precision: bf16 } }\n";
  if (!calibration.empty()) text += "calibration: " + calibration + "\n";
  return load_scenario(folder.write("run.yaml", text));
}

}  // namespace

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

TEST_CASE("What ran beside something else is nothing to fit to") {
  RawMeasurements raw = synthetic::measurements(chosen_truth(), {.suites = {"gemm"}});
  const std::size_t alone = fit_gpu(raw).pairs.size();
  for (std::size_t i = 0; i < 10; ++i) {
    raw.points.push_back(raw.points[i]);
    raw.points.back().record.suite = "overlap";
  }
  CHECK(fit_gpu(raw).pairs.size() == alone);
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

TEST_CASE("Of two nodes of eight GPUs every record is used, or it is said which is not and why") {
  Calibration truth = chosen_truth();
  // GPUs that a processor joins pass everything through its memory. Four cards of 10 Gbit/s carry less than that even
  // at their published efficiency, 4.9 GB/s; a step must be long to be reported from what they take.
  truth.collective.network_efficiency = 0.7;
  truth.collective.network_simple_step_us = 100.0;
  truth.collective.launch_us = 20.0;
  RawMeasurements raw = synthetic::measurements(truth, {.suites = {"streaming", "collective"}, .gpus = 8, .nodes = 2});
  const auto add = [&](const std::string& suite, const std::string& unit, double value,
                       std::map<std::string, std::string> parameters) -> Record& {
    Record record = synthetic::record(suite, suite + " " + std::to_string(raw.points.size()), {});
    record.unit = unit;
    record.values = {value};
    record.parameters = std::move(parameters);
    ++raw.suites[suite].measured;
    return raw.points.emplace_back(RawPoint{record, {suite + ".jsonl", 1, 1}}).record;
  };
  for (const double slowdown : {1.3, 1.4}) {
    add("overlap", "1", slowdown, {{"quantity", "slowdown"}, {"beside", "all_reduce 268435456 B"}});
  }
  add("launch", "s", 12e-6, {{"what", "kernel_round_trip"}});
  add("copy", "s", 1e-3, {{"what", "host_copy"}, {"memory", "pageable"}, {"timing", "host"}, {"direction", "both"}});
  // Unusable records: clocks lowered by heat, and nine ranks that two machines do not share evenly.
  Record hot = raw.points.front().record;
  hot.name += " hot";
  hot.state = DeviceState{900.0, 200.0, {"thermal"}};
  raw.points.push_back({hot, {"streaming.jsonl", 99, 1}});
  Record uneven = raw.of_suite("collective").back()->record;
  uneven.name += " uneven";
  uneven.scenario["workload.collective.ranks"] = "9";
  raw.points.push_back({uneven, {"collective.jsonl", 99, 1}});
  ++raw.suites["streaming"].measured;
  ++raw.suites["collective"].measured;

  // By way of the files, as they come from a machine.
  const TemporaryFolder folder;
  synthetic::write_folder(raw, folder.path());
  const GpuCalibration fit = fit_gpu(read_measurements(folder.path()));
  CHECK(fit.machine.network_cards == 4);
  for (const auto& [suite, count] : fit.suites) {
    INFO(suite);
    CHECK(count.fitted + count.held_out + count.direct + count.drawn + count.left_out == count.measured);
  }
  // Four operations on 2, 8 and 16 GPUs at eleven sizes; every fourth was held out.
  CHECK(fit.suites.at("collective").fitted == 99);
  CHECK(fit.suites.at("collective").held_out == 33);
  CHECK(fit.suites.at("collective").left_out == 1);
  CHECK(fit.suites.at("streaming").left_out == 1);
  CHECK(fit.suites.at("overlap").direct == 2);
  CHECK(fit.suites.at("copy").drawn == 1);
  REQUIRE(fit.not_understood.size() == 2);
  // Collectives are judged on what the fit did not see, those between nodes too.
  const AccuracyBar& bar = fit.bars[3];
  CHECK(bar.name == "collectives");
  CHECK(bar.held_out);
  CHECK(bar.points == 33);
  CHECK(bar.mape < 0.04);  // noise of 2 % has a mean of 1.6 %
  for (const char* name :
       {"collective.launch_us", "collective.network_efficiency", "collective.network_simple_step_us"}) {
    INFO(name);
    const RobustConstant* constant = find(fit, name);
    REQUIRE(constant != nullptr);
    CHECK(constant->after == Approx(constant_row(name).field(truth)).epsilon(0.15));
  }
  // A product is slowed by 30 %, a sum by 40 %: 35 % in the middle.
  const auto overlap = std::ranges::find(fit.direct, "collective.overlap_slowdown", &RobustConstant::name);
  REQUIRE(overlap != fit.direct.end());
  CHECK(overlap->after == Approx(0.35));
}

TEST_CASE("Energies come from products that ran for seconds, and short ones are not limited by power") {
  // A truth that spends four times the published energy, of which nothing would be limited: long products run at the
  // clock that the board's power leaves, short ones at the boost clock.
  Calibration truth = load_default_calibration();
  for (GenerationPower& generation : truth.power.generation) generation.tensor_pj *= 4.0;
  const synthetic::Design design{.suites = {"gemm"}, .noise = 0.0};
  RawMeasurements raw = synthetic::measurements(truth, design);
  Calibration unlimited = truth;
  for (GenerationPower& generation : unlimited.power.generation) generation.tensor_pj = generation.vector_pj = 0.001;
  RawMeasurements fast = synthetic::measurements(unlimited, design);
  for (std::size_t i = 0; i < raw.points.size(); ++i) {
    fast.points[i].record.state = DeviceState{2000.0, std::nullopt, {}};
    const auto& keys = raw.points[i].record.scenario;
    const bool large = keys.at("workload.operator.m") == "8192" && keys.at("workload.operator.n") == "12288";
    if (!large || keys.at("workload.operator.precision") != "bf16") continue;
    Record sustained = raw.points[i].record;
    sustained.name += " sustained";
    sustained.parameters = {{"sustained", "true"}};
    sustained.state = DeviceState{1500.0, 349.0, {"power"}};
    fast.points.push_back({sustained, raw.points[i].where});
  }
  const GpuCalibration fit = fit_gpu(fast);
  const std::string energy = energy_name(generation_of(8.9), true);
  const RobustConstant* constant = find(fit, energy);
  REQUIRE(constant != nullptr);
  CHECK(constant->after == Approx(constant_row(energy).field(truth)).epsilon(0.05));
  CHECK(fit.bars.front().mape < 0.03);
}

TEST_CASE("The calibration file gives the fit's constants, table and covariance back") {
  const GpuCalibration& fit = fitted();
  const YamlNode document = parse_yaml(to_json(fit), "calibration.json");
  Calibration read = read_calibration(Field(document, ""));
  for (const RobustConstant& constant : fit.fitted) {
    INFO(constant.name);
    CHECK(constant_row(constant.name).field(read) == Approx(constant.after).epsilon(1e-5));
  }
  CHECK(read.measured_matmuls.size() == fit.measured_matmuls.size());
  REQUIRE(read.fitted);
  CHECK(read.fitted->names == fit.covariance_names);
  CHECK(read.fitted->covariance[0][0] == Approx(fit.covariance(0, 0)).epsilon(1e-5));
  // Every constant that was not fitted is the base's.
  CHECK(read.host.dispatch_us == load_default_calibration().host.dispatch_us);
  CHECK(to_json(fit) == to_json(fit));
}

TEST_CASE(
    "A calibration's file says what lies at a bound, which products were transposed, and numbers in seven digits") {
  GpuCalibration fit = fitted();
  REQUIRE(fit.fitted.size() > 1);
  for (RobustConstant& constant : fit.fitted) constant.at_bound = false;
  for (MeasuredMatmul& row : fit.measured_matmuls) row.transpose_a = row.transpose_b = false;
  CHECK_THAT(to_json(fit), !Catch::Contains("at_bound") && !Catch::Contains("transpose"));
  fit.fitted.front().at_bound = true;
  fit.measured_matmuls.front().transpose_a = true;
  fit.measured_matmuls.back().transpose_b = true;
  for (const char* key : {"at_bound", "transpose_a", "transpose_b"}) {
    const std::string text = to_json(fit);
    const std::size_t at = text.find(key);
    REQUIRE(at != std::string::npos);
    CHECK(text.substr(text.find(':', at) + 1, 5).find("true") != std::string::npos);
  }
  for (RobustConstant& constant : fit.fitted) constant.after = 0.123456789;
  CHECK_THAT(to_json(fit), Catch::Contains("0.1234568,"));
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

TEST_CASE("Stages are judged by the points of theirs that were held out, and of steps are the last two") {
  for (const StageTrial& stage : fitted().stages) {
    if (stage.name != "streaming" && stage.name != "convolution") continue;
    INFO(stage.name);
    const auto apart = std::ranges::count_if(
        fitted().pairs, [&](const PointPair& pair) { return pair.family == stage.name && pair.held_out; });
    CHECK(stage.held_out);
    CHECK(stage.judged == apart);
  }
  const GpuCalibration whole =
      fit_gpu(synthetic::measurements(chosen_truth(), {.suites = {"streaming"}, .hold_out = false}));
  REQUIRE(whole.stages.size() == 1);
  CHECK_FALSE(whole.stages.front().held_out);
  CHECK_FALSE(whole.bars[1].held_out);
  Gpu gpu;
  gpu.compute_capability = 9.0;
  const std::vector<FitStage> stages = fit_stages(gpu, {});
  for (const FitStage& stage : stages) {
    INFO(stage.name);
    CHECK(stage.of_steps == (&stage >= &stages.back() - 1));
  }
}
