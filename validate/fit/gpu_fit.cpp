#include "validate/fit/gpu_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/cost/power.hpp"
#include "model/job/calibrated_uncertainty.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"

namespace foretrain {

namespace {

/// The point on a board whose power limits nothing.
void lift_power_limit(PredictedPoint& point) { point.scenario.cluster.node.gpu.board_power_watts = 0.0; }

/// A product of a fraction of a second runs at the clock that it began with, unless the device says otherwise: where
/// longer ones tell what power takes, it is compared with the model without that.
bool lift_limit_of_short_products(std::vector<PredictedPoint>& points) {
  if (std::ranges::none_of(points, is_sustained)) return false;
  for (PredictedPoint& point : points) {
    const bool product = point.op && std::holds_alternative<Matmul>(point.op->op.work);
    if (product && !is_sustained(point) && point.raw->power_limited() == false) lift_power_limit(point);
  }
  return true;
}

/// If the device reports that power limited a product, and the model's energies would not limit it, they are raised
/// until they do. A search finds no way from where nothing depends on them.
void raise_energies(const std::vector<PredictedPoint>& points, const Gpu& gpu, Calibration& calibration) {
  constexpr double least_energy = 0.1;  // for unknown generations
  for (const PredictedPoint& point : points) {
    if (!is_sustained(point) || point.raw->power_limited() != true) continue;
    PredictedPoint unlimited = point;
    lift_power_limit(unlimited);
    const Seconds least = predicted_time(unlimited, calibration) * 1.01;
    GenerationPower& energies = calibration.power.generation[generation_of(gpu.compute_capability)];
    TrackedNumber& energy = uses_tensor_cores(gpu, point.op->op.precision) ? energies.tensor_pj : energies.vector_pj;
    for (int i = 0; i < 40 && predicted_time(point, calibration) < least; ++i) {
      energy = std::max(1.2 * energy, least_energy);
    }
  }
}

void add_block(GpuCalibration& result, const std::vector<std::string>& names, const Eigen::MatrixXd& block) {
  result.covariance_names.insert(result.covariance_names.end(), names.begin(), names.end());
  const Eigen::Index before = result.covariance.rows(), after = before + block.rows();
  result.covariance.conservativeResizeLike(Eigen::MatrixXd::Zero(after, after));
  result.covariance.bottomRightCorner(block.rows(), block.cols()) = block;
}

Bytes copied(const PredictedPoint& point) {
  const auto* list = std::get_if<TasksWorkload>(&point.scenario.workload);
  const CopyWork* copy = list == nullptr || list->tasks.empty() ? nullptr : list->tasks.front().copy();
  return copy == nullptr ? Bytes(0.0) : copy->size;
}

/// A link's bandwidth and latency come from its largest and smallest copy: all between them are predicted.
void hold_out_copies(std::vector<PredictedPoint>& points) {
  std::map<std::string, std::pair<Bytes, Bytes>> extremes;
  for (const PredictedPoint& point : points) {
    if (point.kind != "tasks") continue;
    const auto [range, is_new] = extremes.emplace(point.group, std::pair(copied(point), copied(point)));
    range->second = {std::min(range->second.first, copied(point)), std::max(range->second.second, copied(point))};
  }
  for (PredictedPoint& point : points) {
    if (point.kind != "tasks") continue;
    const auto& [least, most] = extremes.at(point.group);
    point.held_out = copied(point) > least && copied(point) < most;
  }
}

std::vector<Observation> thinned(std::vector<Observation> all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<Observation> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(std::move(all[i * all.size() / most]));
  return some;
}

/// The stage's points, those held out or the others.
std::vector<Observation> observations_of(const FitStage& stage, const std::vector<PredictedPoint>& points,
                                         bool held_out) {
  std::vector<Observation> observations;
  for (const PredictedPoint& point : points) {
    const bool in_stage = std::ranges::count(stage.families, stage_family(point)) > 0;
    if (point.held_out == held_out && in_stage) observations.push_back(observation_of(point));
  }
  return observations;
}

void adopt(const StageTrial& trial, const std::string& source, GpuCalibration& result) {
  for (RobustConstant constant : trial.fit.constants) {
    double& known = constant_row(constant.name).field(result.calibration);
    constant.before = known;  // not where the search began
    known = constant.after;
    constant.source = source;
    result.fitted.push_back(std::move(constant));
  }
  add_block(result, trial.fit.covariance_names, trial.fit.covariance);
}

/// Steps that wait for their host nowhere, as they are priced, tell nothing of what it takes for a launch, and a search
/// finds no way from there. It begins at the multiple of the known value that is least off from the steps of this mode.
void place_dispatch(const std::vector<PredictedPoint>& points, ExecutionMode mode, TrackedNumber& dispatch,
                    const Calibration& calibration) {
  const double known = dispatch;
  double best = known, least = std::numeric_limits<double>::infinity();
  for (const double multiple : {1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0}) {
    dispatch = known * multiple;
    double loss = 0.0;
    for (const PredictedPoint& point : points) {
      if (point.kind != "step" || point.held_out || point.scenario.plan.execution != mode) continue;
      loss += robust_loss(std::log(predicted_time(point, calibration) / point.measured));
    }
    if (loss < least) best = dispatch;
    least = std::min(least, loss);
  }
  dispatch = best;
}

/// Start of the stage's search: the known values, but for energies at which power would limit nothing, and
/// dispatch.
Calibration start_of(const FitStage& stage, const std::vector<PredictedPoint>& points, const Gpu& gpu,
                     const Calibration& known) {
  Calibration start = known;
  const auto fits = [&](std::string_view prefix) {
    return std::ranges::any_of(stage.constants, [&](const std::string& name) { return name.starts_with(prefix); });
  };
  if (fits("power.")) raise_energies(points, gpu, start);
  if (fits("host.dispatch_us")) place_dispatch(points, ExecutionMode::eager, start.host.dispatch_us, start);
  if (fits("host.compiled_dispatch_us")) {
    place_dispatch(points, ExecutionMode::compiled, start.host.compiled_dispatch_us, start);
  }
  return start;
}

/// `known`: constants so far, with products that were measured where these are to hold.
void run_stage(const FitStage& stage, const std::vector<PredictedPoint>& points, const Gpu& gpu,
               const Calibration& known, GpuCalibration& result) {
  if (stage.constants.empty()) return;
  std::vector<Observation> observations = observations_of(stage, points, false);
  const std::size_t all = observations.size();
  observations = thinned(std::move(observations), stage.most_points);
  if (observations.size() < all) {
    result.notes.push_back(fmt::format("{}: {} of {} points, evenly chosen, steer the search; all are judged",
                                       stage.name, observations.size(), all));
  }
  if (observations.empty()) {
    for (const std::string& name : stage.constants)
      result.undetermined.push_back({name, "nothing of its kind was measured"});
    return;
  }
  StageTrial trial = try_stage(observations, observations_of(stage, points, true), stage.constants,
                               start_of(stage, points, gpu, known), known);
  const std::vector<Undetermined>& open = trial.fit.undetermined;
  result.undetermined.insert(result.undetermined.end(), open.begin(), open.end());
  trial.name = stage.name;
  result.stages.push_back(trial);
  if (trial.adopted) {
    adopt(trial,
          fmt::format("{} {} points of {}, driver {}, {}", observations.size(), stage.name,
                      result.machine.gpus.front().name, result.machine.driver, result.machine.date),
          result);
    return;
  }
  for (const RobustConstant& constant : trial.fit.constants)
    result.undetermined.push_back({constant.name, "its stage " + verdict(trial)});
}

/// Steps are predicted with the products that were measured, so that these come first.
void run_stages(const std::vector<PredictedPoint>& points, const Gpu& gpu, const MeasuredKinds& measured,
                GpuCalibration& result) {
  const std::vector<FitStage> stages = fit_stages(gpu, measured);
  for (const FitStage& stage : stages) {
    if (!stage.of_steps) run_stage(stage, points, gpu, result.calibration, result);
  }
  keep_table_if_it_helps(points, gpu, result);
  for (const FitStage& stage : stages) {
    const Calibration known = with_table(result.calibration, result.measured_matmuls, gpu);
    if (stage.of_steps) run_stage(stage, points, gpu, known, result);
  }
}

/// Points held out, and training steps, beside the whole calibration; those that were fitted beside the model alone,
/// since the table of measured products holds them exactly.
std::vector<PointPair> pairs_of(const std::vector<PredictedPoint>& points, const Calibration& model,
                                const Calibration& with_products) {
  std::vector<PointPair> pairs;
  for (const PredictedPoint& point : points) {
    pairs.push_back({point.raw->record.name, point.group, family_of(point), point.held_out, point.measured,
                     predicted_time(point, point.held_out || point.kind == "step" ? with_products : model)});
  }
  return pairs;
}

/// The uncertainty of constants that were read off.
void add_direct(GpuCalibration& result) {
  std::vector<std::string> names;
  Eigen::VectorXd variances(result.direct.size());
  for (const RobustConstant& constant : result.direct) {
    variances[static_cast<Eigen::Index>(names.size())] = constant.standard_error * constant.standard_error;
    names.push_back(constant.name);
  }
  add_block(result, names, variances.asDiagonal());
}

/// Use of each measured point: every one is accounted for.
void account(const RawMeasurements& raw, const PredictedPoints& points, GpuCalibration& result) {
  std::map<const RawPoint*, const PredictedPoint*> predicted;
  for (const PredictedPoint& point : points.points) predicted[point.raw] = &point;
  for (const RawPoint& point : raw.points) {
    SuiteCount& count = result.suites[point.record.suite];
    const std::string what = point.parameter("what");
    if (const auto found = predicted.find(&point); found != predicted.end()) {
      ++(found->second->held_out ? count.held_out : count.fitted);
    } else if (std::ranges::find(points.left_out, &point) != points.left_out.end()) {
      ++count.left_out;
    } else if (point.record.suite == "launch" || point.record.suite == "overlap" || what == "l2_read" ||
               what == "pinned_allocate" || what == "fresh_copy" || point.record.suite == "devices") {
      ++count.direct;
    } else {
      ++count.drawn;
    }
  }
}

}  // namespace

GpuCalibration fit_gpu(const RawMeasurements& raw, const YamlNode* cpu) {
  GpuCalibration result;
  result.machine = raw.machine;
  result.suites = raw.suites;
  const MeasuredGpu& device = raw.machine.gpus.front();
  const auto known = known_gpu(device);
  result.known = known.has_value();
  result.gpu = known.value_or(gpu_name(device));
  result.base = std::string(default_calibration);
  result.calibration = load_default_calibration();
  result.calibration.measured_matmuls.clear();
  result.calibration.constants.clear();  // provenance, which every trial would copy

  const std::string plain = node_document(raw.machine, {}, cpu);
  result.figures = measured_figures(raw, predicted_points(raw, plain).points);
  result.node = node_document(raw.machine, result.figures, cpu);
  PredictedPoints points = predicted_points(raw, result.node);
  result.not_understood = std::move(points.not_understood);
  const YamlNode document = parse_yaml(result.node, "measured node");
  Gpu gpu = read_node(Field(document, "")).gpu;
  for (PredictedPoint& point : points.points) {
    Gpu& own = point.scenario.cluster.node.gpu;
    if (result.figures.memory_latency) own.memory_latency = *result.figures.memory_latency;
    if (result.figures.l2_bandwidth) own.l2_bandwidth = *result.figures.l2_bandwidth;
    gpu = own;
  }
  hold_out_copies(points.points);
  const bool sustained = lift_limit_of_short_products(points.points);
  account(raw, points, result);
  result.direct = direct_constants(raw, result.calibration.host);
  for (const RobustConstant& constant : result.direct)
    constant_row(constant.name).field(result.calibration) = constant.after;
  const bool steps = std::ranges::any_of(points.points, [](const auto& point) { return point.kind == "step"; });
  run_stages(points.points, gpu, {sustained, steps}, result);
  add_direct(result);
  const Calibration final_calibration = with_table(result.calibration, result.measured_matmuls, gpu);
  result.pairs = pairs_of(points.points, result.calibration, final_calibration);
  result.errors = errors_of(result.pairs);
  result.spread = spreads_of(result.pairs);
  result.bars = bars_of(result.errors);
  return result;
}

}  // namespace foretrain
