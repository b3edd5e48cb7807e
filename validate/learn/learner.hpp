// How a stack is learned: straight lines through what runs leave, a robust loss, and what the runs do not say.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "validate/learn/learn.hpp"

namespace foretrain {

inline constexpr double first_scale = 0.1, least_scale = 0.03, most_scale = 0.3;  ///< of what is left
inline constexpr double bend = 1.5;  ///< where the loss turns from squares to logarithms, in scales
inline constexpr int folds = 5;
inline constexpr double held = 1e9;  ///< the precision of a position that stays where it is assumed

/// A measured number of a run, which a setting should meet.
struct Measured {
  std::size_t run = 0;
  bool memory = false;
};

inline double value_of(const RunResidual& residual, const Measured& one) {
  return one.memory ? *residual.memory : *residual.time;
}

/// Residuals and their derivatives at a setting.
struct Expansion {
  StackSetting at;
  std::vector<double> left;  ///< of each measured number
  Eigen::MatrixXd slope;     ///< of each measured number by each parameter
};

class Learner {
 public:
  Learner(const std::vector<StackParameter>& parameters, const std::vector<LearnedRun>& runs,
          const PredictRuns& predict)
      : parameters_(parameters), runs_(runs), predict_(predict), prior_(prior_precision(parameters)) {}

  LearnedStack learn();

 private:
  [[nodiscard]] std::size_t count() const { return parameters_.size(); }
  /// What the runs that count leave, in their order; `settings` by run.
  [[nodiscard]] std::vector<RunResidual> residuals(
      const std::function<const StackSetting&(std::size_t run)>& settings) const;
  [[nodiscard]] std::vector<RunResidual> residuals_at(const StackSetting& setting) const {
    return residuals([&](std::size_t) -> const StackSetting& { return setting; });
  }
  /// Of each measured number.
  [[nodiscard]] std::vector<double> left_of(const std::vector<RunResidual>& residuals) const;
  [[nodiscard]] std::vector<double> left_at(const StackSetting& setting) const {
    return left_of(residuals_at(setting));
  }
  /// The runs that something was measured of and that count now.
  [[nodiscard]] std::vector<std::size_t> counted_runs() const;
  /// `left`: what the setting leaves.
  [[nodiscard]] Expansion expand(const StackSetting& at, std::vector<double> left) const;
  [[nodiscard]] double& precision(std::size_t i) { return prior_.diagonal()[static_cast<Eigen::Index>(i)]; }
  [[nodiscard]] bool is_determined(std::size_t i) const {
    return prior_.diagonal()[static_cast<Eigen::Index>(i)] < held;
  }
  void search();
  void choose();
  [[nodiscard]] StackSetting searched_with(const std::string& kept, double& reached);
  /// The measured numbers of every so manieth run, so that there are no more than `most`.
  void count_every(std::size_t most);
  void take_scale();
  /// How far each position is known: standard deviations, with the runs and before them.
  [[nodiscard]] std::vector<std::pair<double, double>> spreads() const;
  /// Positions of which the runs say too little stay where they are assumed.
  void leave_undetermined();
  /// The best setting of the expansion's straight lines, over the measured numbers that `counts` names.
  using Counts = std::function<bool(const Measured&)>;
  [[nodiscard]] StackSetting best_of_lines(const Counts& counts) const;
  [[nodiscard]] double loss(const std::vector<double>& left, const StackSetting& at) const;
  /// Of each measured number in least squares: none where it does not count.
  [[nodiscard]] Eigen::VectorXd weights(const Eigen::VectorXd& left, const Counts& counts) const;
  /// The curvature of the loss of numbers with these weights, and of the prior.
  [[nodiscard]] Eigen::MatrixXd curvature(const Eigen::VectorXd& weights) const {
    return prior_ + lines_.slope.transpose() * weights.asDiagonal() * lines_.slope;
  }
  /// Few runs say one stretch of all kernels, and traits only where they predict clearly better than that and than
  /// nothing learned. `assumed`: how far off steps are then.
  void simplify(const std::vector<double>& assumed);
  void describe(LearnedStack& stack) const;
  /// The runs in turn: which part of them each belongs to.
  [[nodiscard]] std::vector<int> fifths() const {
    std::vector<int> parts;
    for (std::size_t run = 0; run < runs_.size(); ++run) parts.push_back(static_cast<int>(run % folds));
    return parts;
  }
  /// What each run leaves, predicted by what is learned without the runs of its part.
  [[nodiscard]] std::vector<RunResidual> left_out(const std::vector<int>& part_of_run) const;

  const std::vector<StackParameter>& parameters_;
  const std::vector<LearnedRun>& runs_;
  const PredictRuns& predict_;
  Eigen::MatrixXd prior_;
  std::vector<Measured> measured_;  ///< those that count now
  std::vector<Measured> all_;
  Expansion lines_;
  double scale_ = first_scale, memory_scale_ = first_scale;
};

}  // namespace foretrain
