#include "model/job/calibrated_uncertainty.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"
#include "model/cost/measured_matmul.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/job/job.hpp"
#include "model/parallelism/layout.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

constexpr double nine_of_ten = 1.6449;  // standard normal: 0.9 lies within

double log_time(const Scenario& scenario) { return std::log(estimated_time(scenario).value()); }

/// Slopes of ln T by each constant, from one standard error towards the side that has room.
std::vector<double> slopes(const Scenario& scenario) {
  const FittedUncertainty& fitted = *scenario.calibration.fitted;
  Scenario trial = scenario;
  trial.calibration.constants.clear();
  trial.cluster.node.constants.clear();
  const double here = log_time(trial);
  std::vector<double> result(fitted.names.size());
  for (std::size_t i = 0; i < fitted.names.size(); ++i) {
    const ConstantRow* row = find_constant(fitted.names[i]);
    const double error = std::sqrt(fitted.covariance[i][i]);
    if (row == nullptr || !(error > 0.0)) continue;
    double& value = row->field(trial.calibration);
    const double before = value;
    const double step = before + error <= row->maximum ? error : -std::min(error, before - row->minimum);
    value = before + step;
    // Measured products stay what they were measured to be.
    if (!trial.calibration.measured_matmuls.empty()) adopt_measured_matmuls(trial.calibration, trial.cluster.node.gpu);
    if (step != 0.0) result[i] = (log_time(trial) - here) / step;
    value = before;
  }
  return result;
}

double variance_of_constants(const Scenario& scenario) {
  const std::vector<std::vector<double>>& covariance = scenario.calibration.fitted->covariance;
  const std::vector<double> slope = slopes(scenario);
  double sum = 0.0;
  for (std::size_t i = 0; i < slope.size(); ++i) {
    for (std::size_t j = 0; j < slope.size(); ++j) sum += slope[i] * slope[j] * covariance[i][j];
  }
  return std::max(0.0, sum);
}

/// Time of a step's kernels by family, each alone.
std::map<std::string, Seconds> kernels_of(const Scenario& scenario, const TrainWorkload& train) {
  std::map<std::string, Seconds> times;
  const Model model = build_model(train.model, build_options(train, scenario.plan));
  for (const LayerGroup& group : model.layers) {
    for (const Operator& op : group.layer.operators()) {
      const Seconds time = operator_cost(op, scenario.cluster.node.gpu, scenario.calibration).device;
      times[std::string(operator_family(op))] += time * number(group.repeat);
    }
  }
  return times;
}

/// Of a step: that of measured steps where there are any; else families' spreads, each weighing as its kernels do, as
/// if all were off to the same side. What no measured family says has the largest spread of all.
double spread_of_step(const Scenario& scenario, const TrainWorkload& train, double largest) {
  const std::map<std::string, double>& spread = scenario.calibration.fitted->spread;
  if (const auto steps = spread.find("step"); steps != spread.end()) return steps->second;
  Seconds all;
  double weighed = 0.0;
  for (const auto& [family, time] : kernels_of(scenario, train)) {
    const auto found = spread.find(family);
    weighed += time.value() * (found == spread.end() ? largest : found->second);
    all += time;
  }
  const double mean = all > Seconds(0.0) ? weighed / all.value() : largest;
  return std::hypot(mean, std::log(scenario.calibration.step.kernel_stretch));
}

double spread_of(const Scenario& scenario) {
  const std::map<std::string, double>& spread = scenario.calibration.fitted->spread;
  const auto of = [&](std::string_view family) {
    const auto found = spread.find(std::string(family));
    return found == spread.end() ? -1.0 : found->second;
  };
  if (const auto* work = std::get_if<OperatorWorkload>(&scenario.workload)) return of(operator_family(work->op));
  if (std::holds_alternative<CollectiveWorkload>(scenario.workload)) return of("collective");
  double largest = -1.0;
  for (const auto& [family, value] : spread) largest = std::max(largest, value);
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  return largest < 0.0 || train == nullptr ? largest : spread_of_step(scenario, *train, largest);
}

}  // namespace

std::string_view operator_family(const Operator& op) {
  return std::visit([](const auto& work) { return work.word; }, op.work);
}

bool set_calibrated_uncertainty(const Scenario& scenario, Result& result) {
  if (!scenario.calibration.fitted) return false;
  const bool of_gpu = std::holds_alternative<TrainWorkload>(scenario.workload) ||
                      std::holds_alternative<CollectiveWorkload>(scenario.workload) ||
                      std::holds_alternative<OperatorWorkload>(scenario.workload) ||
                      std::holds_alternative<TasksWorkload>(scenario.workload);
  if (!of_gpu || !(result.time() > Seconds(0.0))) return false;
  const double spread = spread_of(scenario);
  if (spread < 0.0) return false;  // nothing of this kind was measured
  const double factor = std::exp(nine_of_ten * std::sqrt(variance_of_constants(scenario) + spread * spread));
  result.uncertainty_low = result.time() / factor;
  result.uncertainty_high = result.time() * factor;
  return true;
}

}  // namespace foretrain
