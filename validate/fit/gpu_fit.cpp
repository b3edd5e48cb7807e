#include "validate/fit/gpu_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/statistics.hpp"
#include "model/cost/measured_matmul.hpp"
#include "model/cost/power.hpp"
#include "model/job/calibrated_uncertainty.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "validate/fit/constant_row.hpp"
#include "validate/fit/direct_constants.hpp"

namespace foretrain {

namespace {

constexpr double four_of_five = 1.2816;  // standard normal: 0.8 lies within
constexpr std::size_t enough_held_out = 5;
constexpr double least_disturbance = 0.4;  // of the logarithm
constexpr double product_bar = 0.05, kernel_bar = 0.08;

bool in_stage(const PredictedPoint& point, const FitStage& stage) {
  return std::find(stage.families.begin(), stage.families.end(), stage_family(point)) != stage.families.end();
}

/// The point on a board whose power limits nothing.
void lift_power_limit(PredictedPoint& point) { point.scenario.cluster.node.gpu.board_power_watts = 0.0; }

/// A product of a fraction of a second runs at the clock that it began with, unless the device says otherwise: where
/// longer ones tell what power takes, it is held against the model without that.
bool lift_limit_of_short_products(std::vector<PredictedPoint>& points) {
  if (std::none_of(points.begin(), points.end(), is_sustained)) return false;
  for (PredictedPoint& point : points) {
    const bool product = point.op && std::holds_alternative<Matmul>(point.op->op.work);
    if (product && !is_sustained(point) && point.raw->power_limited() == false) lift_power_limit(point);
  }
  return true;
}

/// Where the device says that power limited a product, and the model's energies would not limit it, they are raised
/// until they do: a search finds no way from where nothing depends on them.
void raise_energies(const std::vector<PredictedPoint>& points, const Gpu& gpu, Calibration& calibration) {
  constexpr double least_energy = 0.1;  // where nothing is known of the generation
  for (const PredictedPoint& point : points) {
    if (!is_sustained(point) || point.raw->power_limited() != true) continue;
    PredictedPoint unlimited = point;
    lift_power_limit(unlimited);
    const Seconds least = predicted_time(unlimited, calibration) * 1.01;
    GenerationPower& energies = calibration.power.generation[generation_of(gpu.compute_capability)];
    NotedNumber& energy =
        uses_tensor_cores(gpu, point.op->op.precision) ? energies.tensor_watts : energies.vector_watts;
    for (int i = 0; i < 40 && predicted_time(point, calibration) < least; ++i) {
      energy = std::max(1.2 * energy, least_energy);
    }
  }
}

std::vector<SustainedClock> sustained_clocks(const std::vector<PredictedPoint>& points) {
  std::vector<SustainedClock> clocks;
  for (const PredictedPoint& point : points) {
    const std::optional<DeviceState>& state = point.raw->record.state;
    if (!is_sustained(point) || !state || state->sm_mhz <= 0.0) continue;
    clocks.push_back({point.raw->record.name, Hertz(state->sm_mhz * 1e6), state->power_w,
                      point.raw->power_limited().value_or(false)});
  }
  return clocks;
}

/// A table with log residuals of the calibration as it is now.
Calibration with_table(Calibration calibration, const std::vector<MeasuredMatmul>& rows, const Gpu& gpu) {
  calibration.measured_matmuls = rows;
  adopt_measured_matmuls(calibration, gpu);
  return calibration;
}

void add_block(GpuCalibration& result, const std::vector<std::string>& names, const Matrix& block) {
  const std::size_t before = result.covariance_names.size();
  result.covariance_names.insert(result.covariance_names.end(), names.begin(), names.end());
  Matrix whole = square(result.covariance_names.size());
  for (std::size_t i = 0; i < before; ++i) {
    for (std::size_t j = 0; j < before; ++j) whole[i][j] = result.covariance[i][j];
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = 0; j < names.size(); ++j) whole[before + i][before + j] = block[i][j];
  }
  result.covariance = std::move(whole);
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

void run_stage(const FitStage& stage, const std::vector<PredictedPoint>& points, GpuCalibration& result) {
  std::vector<Observation> observations;
  for (const PredictedPoint& point : points) {
    if (!point.held_out && in_stage(point, stage)) observations.push_back(observation_of(point));
  }
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
  RobustFit fit = robust_fit(observations, stage.constants, result.calibration);
  result.calibration = fit.calibration;
  for (const RobustConstant& constant : fit.constants) {
    result.fitted.push_back(
        {constant, fmt::format("{} {} points of {}, driver {}, {}", observations.size(), stage.name,
                               result.machine.gpus.front().name, result.machine.driver, result.machine.date)});
  }
  result.undetermined.insert(result.undetermined.end(), fit.undetermined.begin(), fit.undetermined.end());
  add_block(result, fit.covariance_names, fit.covariance);
}

/// Products that were fitted, but for those too far from the fit to be anything but a disturbance: a table is exact
/// where it was measured, and would carry that on to its neighbours.
std::vector<MeasuredMatmul> table_of(const std::vector<PredictedPoint>& points, const std::string& name, const Gpu& gpu,
                                     const Calibration& calibration) {
  // What power would slow down in a step is no guide to a step where it was measured faster than that.
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

/// Points held out beside the whole calibration; those that were fitted beside the model alone, since the table of
/// measured products holds them exactly.
std::vector<PointPair> pairs_of(const std::vector<PredictedPoint>& points, const Calibration& model,
                                const Calibration& with_products) {
  std::vector<PointPair> pairs;
  pairs.reserve(points.size());
  for (const PredictedPoint& point : points) {
    pairs.push_back({point.raw->record.name, point.group, family_of(point), point.held_out, point.measured,
                     predicted_time(point, point.held_out ? with_products : model)});
  }
  return pairs;
}

std::vector<PointErrors> errors_of(const std::vector<PointPair>& pairs) {
  std::vector<PointErrors> errors;
  for (const PointPair& pair : pairs) {
    auto group = std::find_if(errors.begin(), errors.end(), [&](const PointErrors& e) {
      return e.group == pair.group && e.held_out == pair.held_out;
    });
    if (group == errors.end()) {
      group = errors.insert(errors.end(), {pair.group, pair.family, pair.held_out, 0, 0.0, 0.0, 0.0, ""});
    }
    const double error = pair.predicted / pair.measured - 1.0;
    ++group->points;
    group->mape += std::abs(error);
    group->bias += error;
    if (std::abs(error) <= std::abs(group->worst) && !group->worst_point.empty()) continue;
    group->worst = error;
    group->worst_point = pair.name;
  }
  for (PointErrors& group : errors) {
    group.mape /= group.points;
    group.bias /= group.points;
  }
  return errors;
}

/// Of points held out where there are enough of them, else of all.
std::map<std::string, double> spreads_of(const std::vector<PointPair>& pairs) {
  std::map<std::string, std::vector<double>> all, held_out;
  for (const PointPair& pair : pairs) {
    const double distance = std::abs(std::log(pair.predicted / pair.measured));
    all[pair.family].push_back(distance);
    if (pair.held_out) held_out[pair.family].push_back(distance);
  }
  std::map<std::string, double> spread;
  for (const auto& [family, distances] : all) {
    const std::vector<double>& counted = held_out[family].size() >= enough_held_out ? held_out[family] : distances;
    spread[family] = quantile(counted, 0.8) / four_of_five;
  }
  return spread;
}

AccuracyBar bar_of(const std::string& name, double limit, const std::vector<std::string>& families,
                   const std::vector<PointErrors>& errors) {
  const auto sum = [&](bool held_out_only) {
    AccuracyBar bar{name, limit, 0, held_out_only, 0.0};
    for (const PointErrors& group : errors) {
      if (held_out_only && !group.held_out) continue;
      if (std::find(families.begin(), families.end(), group.family) == families.end()) continue;
      bar.points += group.points;
      bar.mape += group.mape * group.points;
    }
    if (bar.points > 0) bar.mape /= bar.points;
    return bar;
  };
  const AccuracyBar held_out = sum(true);
  return held_out.points > 0 ? held_out : sum(false);
}

std::vector<AccuracyBar> bars_of(const std::vector<PointErrors>& errors) {
  return {bar_of("matrix products", product_bar, {"matmul"}, errors),
          bar_of("other kernels", kernel_bar, {"convolution", "attention", "streaming", "memory_access"}, errors),
          bar_of("copies and task lists", kernel_bar, {"tasks"}, errors),
          bar_of("collectives", kernel_bar, {"collective"}, errors)};
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

/// Keeps the table of measured products where points that it does not hold are predicted no worse with it.
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

/// What became of each measured point: none is passed over in silence.
void account(const RawMeasurements& raw, const PredictedPoints& points, GpuCalibration& result) {
  std::map<const RawPoint*, const PredictedPoint*> predicted;
  for (const PredictedPoint& point : points.points) predicted[point.raw] = &point;
  for (const RawPoint& point : raw.points) {
    SuiteCount& count = result.suites[point.record.suite];
    const std::string what = point.parameter("what");
    if (const auto found = predicted.find(&point); found != predicted.end()) {
      ++(found->second->held_out ? count.held_out : count.fitted);
    } else if (std::find(points.left_out.begin(), points.left_out.end(), &point) != points.left_out.end()) {
      ++count.left_out;
    } else if (point.record.suite == "launch" || point.record.suite == "overlap" || what == "l2_read" ||
               what == "pinned_allocate") {
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
  result.sustained = sustained_clocks(points.points);
  account(raw, points, result);
  result.direct = direct_constants(raw, result.calibration.host);
  for (const DirectConstant& constant : result.direct)
    constant_row(constant.name).field(result.calibration) = constant.value;
  raise_energies(points.points, gpu, result.calibration);
  for (const FitStage& stage : fit_stages(gpu, sustained)) run_stage(stage, points.points, result);
  std::vector<std::string> names;
  Matrix block = square(result.direct.size());
  for (std::size_t i = 0; i < result.direct.size(); ++i) {
    names.push_back(result.direct[i].name);
    block[i][i] = result.direct[i].standard_error * result.direct[i].standard_error;
  }
  add_block(result, names, block);
  keep_table_if_it_helps(points.points, gpu, result);
  const Calibration final_calibration = with_table(result.calibration, result.measured_matmuls, gpu);
  result.pairs = pairs_of(points.points, result.calibration, final_calibration);
  result.errors = errors_of(result.pairs);
  result.spread = spreads_of(result.pairs);
  result.bars = bars_of(result.errors);
  return result;
}

}  // namespace foretrain
