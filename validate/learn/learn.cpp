#include "validate/learn/learn.hpp"

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/statistics.hpp"
#include "model/memory/memory.hpp"

namespace foretrain {

namespace {

using Eigen::MatrixXd, Eigen::VectorXd;

constexpr double first_scale = 0.1, least_scale = 0.03, most_scale = 0.3;  // of what is left
constexpr double bend = 1.5;  // transition of the loss from squares to logarithms, in scales
constexpr double held = 1e9;  // the precision of a position that stays where it is assumed

/// A measured number of a run, which a setting should meet.
struct Measured {
  std::size_t run = 0;
  bool memory = false;
};

/// Residuals and their derivatives at a setting.
struct Expansion {
  StackSetting at;
  std::vector<double> left;  ///< of each measured number
  MatrixXd slope;            ///< of each measured number by each parameter
};

bool every_number(const Measured& /*one*/) { return true; }

/// The runs in turn: which part of them each belongs to.
int fifth_of(std::size_t run) { return static_cast<int>(run % 5); }

Eigen::Map<const VectorXd> as_vector(const std::vector<double>& numbers) {
  return {numbers.data(), static_cast<Eigen::Index>(numbers.size())};
}

/// Whether it is what a trainer's own code takes, on the host beside kernels or in their way.
bool is_of_code(const StackParameter& parameter) {
  return parameter.name == layer_dispatch_key || parameter.name == layer_overhead_key;
}

/// Errors of measured steps: |ln(predicted / measured)|.
std::vector<double> step_distances(const std::vector<RunResidual>& residuals) {
  std::vector<double> distances;
  for (const RunResidual& one : residuals) {
    if (one.time) distances.push_back(std::abs(*one.time));
  }
  return distances;
}

/// Straight lines through what runs leave, a robust loss, and what the runs do not say.
class Learner {
 public:
  Learner(const std::vector<StackParameter>& parameters, const std::vector<LearnedRun>& runs,
          const PredictRuns& predict)
      : parameters_(parameters), runs_(runs), predict_(predict), prior_(prior_precision(parameters)) {}

  LearnedStack learn() {
    LearnedStack stack;
    for (std::size_t run = 0; run < runs_.size(); ++run) measured_.push_back({run, false});  // each counts for now
    const std::vector<RunResidual> assumed = residuals_at(StackSetting(count(), 0.0));
    measured_.clear();
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      if (assumed[run].time) measured_.push_back({run, false});
      if (assumed[run].memory) measured_.push_back({run, true});
    }
    if (std::ranges::all_of(measured_, &Measured::memory)) throw UsageError("no run measures the time of a step");
    all_ = measured_;
    choose();
    take_scale();
    leave_undetermined();
    search();
    simplify(step_distances(assumed));
    describe(stack);

    const std::vector<std::size_t> counted = counted_runs();
    std::vector<LearnedRun> of_counted;
    std::vector<RunResidual> before;
    std::set<int> nodes;
    for (const std::size_t run : counted) {
      of_counted.push_back(runs_[run]);
      before.push_back(assumed[run]);
      nodes.insert(runs_[run].nodes);
    }
    const std::vector<RunResidual> unseen = left_out(fifth_of);
    std::vector<double> shortfalls;
    for (const RunResidual& one : unseen) {
      if (one.memory) shortfalls.push_back(std::max(-*one.memory, 0.0));
    }
    stack.spread = nine_of_ten(step_distances(unseen));
    if (!shortfalls.empty()) stack.memory_shortfall = quantile(shortfalls, 0.9);
    const double memory_spread = spread_of_shortfall(std::expm1(stack.memory_shortfall));
    const auto errors = [&](const std::vector<RunResidual>& left) {
      return learned_errors(of_counted, left, memory_spread);
    };
    const std::vector<RunResidual> fitted = residuals_at(lines_.at);
    for (std::size_t i = 0; i < counted.size(); ++i)
      stack.cases.push_back({counted[i], before[i], fitted[i], unseen[i]});
    stack.assumed = errors(before);
    stack.fitted = errors(fitted);
    stack.left_out = errors(unseen);
    if (nodes.size() > 1) stack.scaled = errors(left_out([&](std::size_t run) { return runs_[run].nodes; }));

    for (std::size_t m = 0; m < measured_.size(); ++m) {
      if (!measured_[m].memory && std::abs(lines_.left[m]) > 4.0 * scale_)
        stack.unexplained.push_back(measured_[m].run);
    }
    return stack;
  }

 private:
  using Counts = std::function<bool(const Measured&)>;
  using Settings = std::function<const StackSetting&(std::size_t run)>;

  [[nodiscard]] std::size_t count() const { return parameters_.size(); }
  [[nodiscard]] double& precision(std::size_t i) { return prior_.diagonal()[static_cast<Eigen::Index>(i)]; }
  [[nodiscard]] bool is_determined(std::size_t i) const { return prior_(i, i) < held; }
  [[nodiscard]] double scale_of(const Measured& one) const { return one.memory ? memory_scale_ : scale_; }
  /// The runs that something was measured of and that count now.
  std::vector<std::size_t> counted_runs() const {
    std::vector<std::size_t> runs;
    for (const Measured& one : measured_) {
      if (runs.empty() || runs.back() != one.run) runs.push_back(one.run);
    }
    return runs;
  }

  /// Residuals of the used runs, in their order.
  [[nodiscard]] std::vector<RunResidual> residuals(const Settings& settings) const {
    std::vector<RunAt> asked;
    for (const std::size_t run : counted_runs()) asked.push_back({run, settings(run)});
    return predict_(asked);
  }
  [[nodiscard]] std::vector<RunResidual> residuals_at(const StackSetting& setting) const {
    return residuals([&](std::size_t) -> const StackSetting& { return setting; });
  }
  [[nodiscard]] std::vector<double> left_at(const StackSetting& setting) const {
    const std::vector<std::size_t> runs = counted_runs();
    const std::vector<RunResidual> all = residuals_at(setting);
    std::vector<double> left;
    std::size_t of_run = 0;
    for (const Measured& one : measured_) {
      while (runs[of_run] != one.run) ++of_run;
      left.push_back(one.memory ? *all[of_run].memory : *all[of_run].time);
    }
    return left;
  }

  /// A run is predicted anew for those parameters alone that may move it, all of them at once: no one waits between.
  Expansion expand(const StackSetting& at, std::vector<double> left) const {
    Expansion result{at, std::move(left), {}};
    result.slope.setZero(static_cast<Eigen::Index>(measured_.size()), static_cast<Eigen::Index>(count()));
    std::vector<RunAt> asked;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> place;  // of a run's prediction for a parameter
    const auto step_of = [&](std::size_t i) { return 0.1 * parameters_[i].spread; };
    for (const std::size_t run : counted_runs()) {
      for (std::size_t i = 0; i < count(); ++i) {
        if (!is_determined(i) || !parameters_[i].moves(runs_[run].nodes, runs_[run].pipelined)) continue;
        place.emplace(std::pair(run, i), asked.size());
        asked.push_back({run, at});
        asked.back().setting[i] += step_of(i);
      }
    }
    const std::vector<RunResidual> moved = predict_(asked);
    for (std::size_t m = 0; m < measured_.size(); ++m) {
      for (std::size_t i = 0; i < count(); ++i) {
        const auto known = place.find({measured_[m].run, i});
        if (known == place.end()) continue;
        result.slope(static_cast<Eigen::Index>(m), static_cast<Eigen::Index>(i)) =
            ((measured_[m].memory ? *moved[known->second].memory : *moved[known->second].time) - result.left[m]) /
            step_of(i);
      }
    }
    return result;
  }

  double loss(const std::vector<double>& left, const StackSetting& at) const {
    double sum = 0.0;
    for (std::size_t m = 0; m < measured_.size(); ++m) {
      const double in_bends = left[m] / (bend * scale_of(measured_[m]));
      sum += 0.5 * bend * bend * std::log1p(in_bends * in_bends);
    }
    return sum + 0.5 * as_vector(at).dot(prior_ * as_vector(at));
  }

  /// Weight of each measured number in least squares; 0 where it does not count.
  VectorXd weights(const VectorXd& left, const Counts& counts) const {
    VectorXd result = VectorXd::Zero(left.size());
    for (Eigen::Index m = 0; m < left.size(); ++m) {
      const Measured& one = measured_[static_cast<std::size_t>(m)];
      const double scale = scale_of(one);
      if (counts(one)) result[m] = 1.0 / (scale * scale + left[m] * left[m] / (bend * bend));
    }
    return result;
  }
  /// The curvature of the loss of numbers with these weights, and of the prior.
  [[nodiscard]] MatrixXd curvature(const VectorXd& weights) const {
    return prior_ + lines_.slope.transpose() * weights.asDiagonal() * lines_.slope;
  }

  /// The best setting of the expansion's straight lines, over the measured numbers that count.
  StackSetting best_of_lines(const Counts& counts) const {
    constexpr int rounds = 30;  // of reweighting
    const VectorXd begin = as_vector(lines_.at);
    VectorXd at = begin, left = as_vector(lines_.left), least = begin;
    for (std::size_t i = 0; i < count(); ++i) least[static_cast<Eigen::Index>(i)] = parameters_[i].least;
    for (int round = 0; round < rounds; ++round) {
      const VectorXd counted = weights(left, counts);
      const VectorXd pull = prior_ * at + lines_.slope.transpose() * counted.cwiseProduct(left);
      at = (at - curvature(counted).llt().solve(pull)).cwiseMax(least);
      left = as_vector(lines_.left) + lines_.slope * (at - begin);
    }
    return {at.begin(), at.end()};
  }

  /// Gauss-Newton: to the best of the straight lines, half as far while that is no better.
  void search() {
    constexpr int most_steps = 6;
    for (int step = 0; step < most_steps; ++step) {
      const double before = loss(lines_.left, lines_.at);
      const StackSetting goal = best_of_lines(every_number);
      StackSetting next = goal;
      std::vector<double> left;
      double after = before;
      for (double part = 1.0; part > 0.1; part *= 0.5) {
        for (std::size_t i = 0; i < count(); ++i) next[i] = lines_.at[i] + part * (goal[i] - lines_.at[i]);
        left = left_at(next);
        after = loss(left, next);
        if (after < before) break;
      }
      if (!(after < before)) return;
      lines_ = expand(next, std::move(left));
      if (before - after < 1e-3 * before) return;
    }
  }

  StackSetting searched_with(const std::string& kept, double& reached) {
    constexpr double begin = 1.5;  // spreads
    StackSetting start(count(), 0.0);
    prior_ = prior_precision(parameters_);
    for (std::size_t i = 0; i < count(); ++i) {
      if (parameters_[i].name == kept) {
        start[i] = begin * parameters_[i].spread;
      } else if (is_of_code(parameters_[i])) {
        precision(i) += held;
      } else if (parameters_[i].name == "workload.train.p2p_dispatch_overhead") {
        start[i] = parameters_[i].spread;  // hidden by kernels below
      }
    }
    lines_ = expand(start, left_at(start));
    search();
    reached = loss(lines_.left, lines_.at);
    return lines_.at;
  }

  /// Place of a framework's own code: on the host beside kernels, which hide it, or between them. Runs tell the two
  /// apart badly one by one and well together; the search follows each alone, from a value at which it has a slope, and
  /// keeps the better. A hundred runs tell.
  void choose() {
    constexpr std::size_t enough = 100;
    const std::size_t stride = (runs_.size() + enough - 1) / enough;
    std::erase_if(measured_, [&](const Measured& one) { return one.run % stride != 0; });
    double least = 0.0, other = 0.0;
    StackSetting best = searched_with(layer_dispatch_key, least);
    std::string kept = layer_dispatch_key;
    if (StackSetting overhead = searched_with(layer_overhead_key, other); other < least) {
      best = std::move(overhead);
      kept = layer_overhead_key;
    }
    prior_ = prior_precision(parameters_);
    for (std::size_t i = 0; i < count(); ++i) {
      if (is_of_code(parameters_[i]) && parameters_[i].name != kept) precision(i) += held;
    }
    measured_ = all_;
    lines_ = expand(best, left_at(best));
    search();
  }

  void take_scale() {
    for (const bool memory : {false, true}) {
      std::vector<double> distances;
      for (std::size_t m = 0; m < measured_.size(); ++m) {
        if (measured_[m].memory == memory) distances.push_back(std::abs(lines_.left[m]));
      }
      if (distances.empty()) continue;
      constexpr double normal_median = 0.6745;  // of the distances of normal deviates
      (memory ? memory_scale_ : scale_) = std::clamp(median(distances) / normal_median, least_scale, most_scale);
    }
  }

  /// Residual of each run, predicted by a profile learned without the runs of its part.
  template <typename PartOf>
  [[nodiscard]] std::vector<RunResidual> left_out(PartOf part_of) const {
    std::map<int, StackSetting> others;
    for (const std::size_t run : counted_runs()) {
      const int part = part_of(run);
      if (others.contains(part)) continue;
      others[part] = best_of_lines([&](const Measured& one) { return part_of(one.run) != part; });
    }
    return residuals([&](std::size_t run) -> const StackSetting& { return others.at(part_of(run)); });
  }

  /// Uncertainty of each position: standard deviations, with the runs and before them.
  std::vector<std::pair<double, double>> spreads() const {
    const Eigen::Map<const VectorXd> left(lines_.left.data(), lines_.slope.rows());
    const MatrixXd after = curvature(weights(left, every_number)).inverse();
    const MatrixXd before = prior_precision(parameters_).inverse();
    std::vector<std::pair<double, double>> result;
    for (Eigen::Index i = 0; i < prior_.rows(); ++i) {
      result.emplace_back(std::sqrt(after(i, i)), std::sqrt(before(i, i)));
    }
    return result;
  }

  /// Positions of which the runs say too little stay where they are assumed.
  void leave_undetermined() {
    constexpr double narrowed = 0.8;
    const std::vector<std::pair<double, double>> known = spreads();
    bool any = false;
    for (std::size_t i = 0; i < count(); ++i) {
      if (!is_determined(i) || known[i].first < narrowed * known[i].second) continue;
      precision(i) += held;
      any = true;
    }
    if (!any) return;
    const StackSetting best = best_of_lines(every_number);
    lines_ = expand(best, left_at(best));
  }

  /// Few runs say one stretch of all kernels, and settings only where they predict clearly better than that and than
  /// nothing learned. `assumed`: how far off steps are then.
  void simplify(const std::vector<double>& assumed) {
    constexpr std::size_t few = 40;
    if (runs_.size() > few) return;
    const std::vector<double> by_traits = step_distances(left_out(fifth_of));
    MatrixXd prior = prior_;
    Expansion lines = lines_;
    StackSetting start = lines_.at;
    for (std::size_t i = 0; i < count(); ++i) {
      if (parameters_[i].of_memory || parameters_[i].name == "step.kernel_stretch") continue;
      if (is_determined(i)) precision(i) += held;
      start[i] = 0.0;
    }
    lines_ = expand(start, left_at(start));
    search();
    if (!clearly_less(by_traits, assumed) || !clearly_less(by_traits, step_distances(left_out(fifth_of)))) return;
    prior_ = std::move(prior);
    lines_ = std::move(lines);
  }

  void describe(LearnedStack& stack) const {
    constexpr double moved = 0.03;
    const std::vector<std::pair<double, double>> known = spreads();
    for (std::size_t i = 0; i < count(); ++i) {
      LearnedParameter learned{parameters_[i], is_determined(i) ? lines_.at[i] : 0.0, known[i].first, 0,
                               is_determined(i)};
      std::set<std::size_t> runs;
      for (std::size_t m = 0; m < measured_.size(); ++m) {
        const double slope = lines_.slope(static_cast<Eigen::Index>(m), static_cast<Eigen::Index>(i));
        if (std::abs(slope) * parameters_[i].spread > moved) runs.insert(measured_[m].run);
      }
      learned.runs = static_cast<int>(runs.size());
      stack.parameters.push_back(std::move(learned));
    }
  }

  const std::vector<StackParameter>& parameters_;
  const std::vector<LearnedRun>& runs_;
  const PredictRuns& predict_;
  MatrixXd prior_;
  std::vector<Measured> measured_;  ///< those that count now
  std::vector<Measured> all_;
  Expansion lines_;
  double scale_ = first_scale, memory_scale_ = first_scale;
};

}  // namespace

LearnedStack learn_stack(const std::vector<StackParameter>& parameters, const std::vector<LearnedRun>& runs,
                         const PredictRuns& predict) {
  return Learner(parameters, runs, predict).learn();
}

}  // namespace foretrain
