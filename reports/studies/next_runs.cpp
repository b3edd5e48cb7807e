#include "reports/studies/next_runs.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <optional>

#include "model/base/number.hpp"
#include "model/base/statistics.hpp"

namespace foretrain {

namespace {

constexpr int preposterior_draws = 512;

using Runs = std::vector<std::size_t>;

/// Runs in all draws (rows), and what a choice among them comes to.
class Preposterior {
 public:
  Preposterior(const std::vector<PossibleRun>& runs, const RunErrors& errors)
      : noise_(errors.noise), apart_(preposterior_draws, runs.size()), errors_(apart_), steps_(apart_) {
    std::vector<UncertainPlan> plans;
    for (const PossibleRun& run : runs) plans.push_back(run.plan);
    const std::vector<std::vector<double>> logs = drawn_logs(plans, errors.own, errors.memory, preposterior_draws);
    std::vector<double> expected;
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const auto column = static_cast<Eigen::Index>(run);
      const Eigen::VectorXd log = column_of(logs[run]);
      apart_.col(column) = log.array() - log.mean();
      errors_.col(column) = column_of(normal_deviates(logs.size() + run, preposterior_draws));
      steps_.col(column) = runs[run].plan.value * log.array().exp();
      if (!runs[run].is_choice) continue;
      choices_.push_back(run);
      expected.push_back(std::log(runs[run].plan.value) + log.mean());
    }
    expected_ = column_of(expected);
    covariance_ = apart_.transpose() * apart_ / preposterior_draws;
    best_ = steps_(Eigen::all, choices_).rowwise().minCoeff();
  }

  /// By how much the choice takes longer than the draw's best, the mean over all draws, where these runs are measured.
  [[nodiscard]] double regret(const Runs& measured) const {
    // By how much each measured run is off, beyond what was expected, and what that makes expect of each choice.
    const Eigen::MatrixXd seen = apart_(Eigen::all, measured) + noise_ * errors_(Eigen::all, measured);
    const Eigen::MatrixXd reported = (seen * gains_of(measured).transpose()).rowwise() + expected_.transpose();
    double sum = 0.0;
    for (Eigen::Index draw = 0; draw < reported.rows(); ++draw) {
      Eigen::Index chosen = 0;
      reported.row(draw).minCoeff(&chosen);
      sum += steps_(draw, static_cast<Eigen::Index>(choices_[at_index(chosen)])) / best_(draw) - 1.0;
    }
    return sum / preposterior_draws;
  }

 private:
  static Eigen::VectorXd column_of(const std::vector<double>& values) {
    return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
  }
  /// By choice and measured run: what of a surprise there is expected here, too.
  [[nodiscard]] Eigen::MatrixXd gains_of(const Runs& measured) const {
    Eigen::MatrixXd among = covariance_(measured, measured);
    among.diagonal().array() += noise_ * noise_;
    return covariance_(choices_, measured) * among.inverse();
  }

  double noise_;
  Eigen::MatrixXd apart_, errors_, steps_;  ///< by draw and run: logs less their mean, deviates of measuring, steps
  Eigen::MatrixXd covariance_;              ///< of the logs of two runs
  Runs choices_;
  Eigen::VectorXd expected_, best_;  ///< ln(step) of each choice; the best step of each draw
};

}  // namespace

NextRuns next_runs(const std::vector<PossibleRun>& runs, const RunErrors& errors, std::size_t most, double gpu_hours) {
  NextRuns next;
  if (std::ranges::none_of(runs, &PossibleRun::is_choice)) return next;
  const Preposterior draws(runs, errors);
  next.regret = draws.regret({});
  double left = next.regret;
  std::vector<std::size_t> measured;
  while (measured.size() < most) {
    std::optional<NextRun> best;
    measured.push_back(0);
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const bool again = std::find(measured.begin(), measured.end() - 1, run) != measured.end() - 1;
      if (again || !runs[run].is_measurable || runs[run].gpu_hours > gpu_hours) continue;
      measured.back() = run;
      const double regret = draws.regret(measured);
      if (regret < (best ? best->regret : left)) best = {run, regret};
    }
    if (!best) break;
    measured.back() = best->run;
    gpu_hours -= runs[best->run].gpu_hours;
    left = best->regret;
    next.runs.push_back(*best);
  }
  return next;
}

}  // namespace foretrain
