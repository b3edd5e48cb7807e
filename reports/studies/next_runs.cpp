#include "reports/studies/next_runs.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "model/base/number.hpp"
#include "model/base/statistics.hpp"

namespace foretrain {

namespace {

constexpr int preposterior_draws = 512;

/// Runs in all draws, and what a choice among them comes to.
class Preposterior {
 public:
  Preposterior(const std::vector<PossibleRun>& runs, const RunErrors& errors) : runs_(runs), noise_(errors.noise) {
    std::vector<UncertainPlan> plans;
    for (const PossibleRun& run : runs) plans.push_back(run.plan);
    logs_ = drawn_logs(plans, errors.own, errors.memory, preposterior_draws);
    for (std::size_t run = 0; run < runs.size(); ++run) {
      means_.push_back(mean(logs_[run]));
      errors_.push_back(normal_deviates(logs_.size() + run, preposterior_draws));
      expected_.push_back(std::log(runs[run].plan.value) + means_[run]);
      if (runs[run].is_choice) choices_.push_back(run);
    }
    Eigen::MatrixXd apart(preposterior_draws, runs.size());
    for (std::size_t run = 0; run < runs.size(); ++run) {
      for (std::size_t draw = 0; draw < logs_[run].size(); ++draw) {
        apart(static_cast<Eigen::Index>(draw), static_cast<Eigen::Index>(run)) = logs_[run][draw] - means_[run];
      }
    }
    covariance_ = apart.transpose() * apart / preposterior_draws;
    for (int draw = 0; draw < preposterior_draws; ++draw) best_.push_back(best_step(at_index(draw)));
  }

  /// By how much the choice takes longer than the draw's best, the mean over all draws, where these runs are measured.
  [[nodiscard]] double regret(const std::vector<std::size_t>& measured) const {
    const Eigen::MatrixXd gains = gains_of(measured);
    double sum = 0.0;
    for (std::size_t draw = 0; draw < at_index(preposterior_draws); ++draw) {
      const std::vector<double> seen = surprises(measured, draw);
      double least = std::numeric_limits<double>::infinity();
      std::size_t chosen = choices_.front();
      for (std::size_t i = 0; i < choices_.size(); ++i) {
        double expected = expected_[choices_[i]];
        for (std::size_t m = 0; m < seen.size(); ++m) {
          expected += gains(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(m)) * seen[m];
        }
        if (expected >= least) continue;
        least = expected;
        chosen = choices_[i];
      }
      sum += step(chosen, draw) / best_[draw] - 1.0;
    }
    return sum / preposterior_draws;
  }

 private:
  [[nodiscard]] double step(std::size_t run, std::size_t draw) const {
    return runs_[run].plan.value * std::exp(logs_[run][draw]);
  }
  [[nodiscard]] double best_step(std::size_t draw) const {
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t run : choices_) best = std::min(best, step(run, draw));
    return best;
  }
  /// By how much each measured run was off, beyond what was expected.
  [[nodiscard]] std::vector<double> surprises(const std::vector<std::size_t>& measured, std::size_t draw) const {
    std::vector<double> seen;
    for (const std::size_t run : measured) {
      seen.push_back(logs_[run][draw] - means_[run] + noise_ * errors_[run][draw]);
    }
    return seen;
  }
  /// By choice and measured run: what of a surprise there is expected here, too.
  [[nodiscard]] Eigen::MatrixXd gains_of(const std::vector<std::size_t>& measured) const {
    Eigen::MatrixXd among = covariance_(measured, measured);
    among.diagonal().array() += noise_ * noise_;
    return covariance_(choices_, measured) * among.inverse();
  }

  const std::vector<PossibleRun>& runs_;
  double noise_;
  std::vector<std::vector<double>> logs_, errors_;  ///< by run, then draw
  std::vector<double> means_, expected_;            ///< by run: of its logs, and ln of its step
  Eigen::MatrixXd covariance_;                      ///< of the logs of two runs
  std::vector<std::size_t> choices_;
  std::vector<double> best_;  ///< by draw
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
