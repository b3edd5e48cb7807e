#include "validate/learn/learn.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/statistics.hpp"

namespace foretrain {

namespace {

constexpr double first_scale = 0.1, least_scale = 0.03, most_scale = 0.3;
constexpr double bend = 1.5;  ///< where the loss turns from squares to logarithms, in scales
constexpr int most_steps = 6, folds = 5;
constexpr double held = 1e9;  ///< the precision of a position that stays where it is assumed

/// A measured number of a run, which a setting should meet.
struct Measured {
  std::size_t run = 0;
  bool memory = false;
};

/// Residuals and their derivatives at a setting.
struct Expansion {
  StackSetting at;
  std::vector<double> left;                ///< of each measured number
  std::vector<std::vector<double>> slope;  ///< of each measured number by each parameter
};

class Learner {
 public:
  Learner(const std::vector<StackParameter>& parameters, const std::vector<int>& nodes, const PredictRuns& predict)
      : parameters_(parameters), nodes_(nodes), predict_(predict), prior_(prior_precision(parameters)) {}

  LearnedStack learn();

 private:
  [[nodiscard]] std::size_t count() const { return parameters_.size(); }
  /// What the runs leave of each measured number.
  [[nodiscard]] std::vector<double> left_of(const std::vector<RunResidual>& runs) const;
  [[nodiscard]] std::vector<double> left_at(const StackSetting& setting) const {
    return left_of(predict_(std::vector<StackSetting>(nodes_.size(), setting)));
  }
  /// `left`: what the setting leaves.
  [[nodiscard]] Expansion expand(const StackSetting& at, std::vector<double> left) const;
  [[nodiscard]] bool is_determined(std::size_t i) const { return prior_[i][i] < held; }
  void search();
  void search_either_way();
  void take_scale();
  /// How far each position is known: standard deviations, with the runs and before them.
  [[nodiscard]] std::vector<std::pair<double, double>> spreads() const;
  /// Positions of which the runs say too little stay where they are assumed.
  void leave_undetermined();
  /// The best setting of the expansion's straight lines, over the measured numbers that `counts` names.
  [[nodiscard]] StackSetting best_of_lines(const std::function<bool(const Measured&)>& counts) const;
  [[nodiscard]] double loss(const std::vector<double>& left, const StackSetting& at,
                            const std::function<bool(const Measured&)>& counts) const;
  [[nodiscard]] double weight(double left, bool memory) const {
    const double scale = memory ? memory_scale_ : scale_;
    return 1.0 / (scale * scale + left * left / (bend * bend));
  }
  /// The curvature of the loss of these numbers, and of the prior.
  [[nodiscard]] Matrix curvature(const std::vector<double>& left,
                                 const std::function<bool(const Measured&)>& counts) const;
  void describe(LearnedStack& stack) const;
  [[nodiscard]] LearnedErrors errors_of(const std::vector<double>& left) const;
  /// What each run leaves, predicted by what is learned without the runs of its part.
  [[nodiscard]] std::vector<double> left_out(const std::vector<int>& part_of_run) const;

  const std::vector<StackParameter>& parameters_;
  const std::vector<int>& nodes_;
  const PredictRuns& predict_;
  Matrix prior_;
  std::vector<Measured> measured_;
  Expansion lines_;
  double scale_ = first_scale, memory_scale_ = first_scale;
};

/// Parameters of different numbers of nodes touch different runs, unless a run's nodes lie between two of them; each
/// number of nodes has its own here, so that one prediction of all runs shows all of these slopes.
Expansion Learner::expand(const StackSetting& at, std::vector<double> left) const {
  Expansion result{at, std::move(left), std::vector(measured_.size(), std::vector(count(), 0.0))};
  const auto step_of = [&](std::size_t i) { return 0.1 * parameters_[i].spread; };
  const auto take = [&](const std::vector<double>& moved, std::size_t i, std::size_t m) {
    result.slope[m][i] = (moved[m] - result.left[m]) / step_of(i);
  };
  std::vector<StackSetting> by_size(nodes_.size(), at);
  for (std::size_t i = 0; i < count(); ++i) {
    if (parameters_[i].kind == StackParameter::Kind::scaling) {
      for (std::size_t run = 0; run < nodes_.size(); ++run) {
        if (nodes_[run] == parameters_[i].nodes) by_size[run][i] += step_of(i);
      }
      continue;
    }
    StackSetting moved = at;
    moved[i] += step_of(i);
    const std::vector<double> there = left_at(moved);
    for (std::size_t m = 0; m < measured_.size(); ++m) take(there, i, m);
  }
  const std::vector<double> there = left_of(predict_(by_size));
  for (std::size_t i = 0; i < count(); ++i) {
    if (parameters_[i].kind != StackParameter::Kind::scaling) continue;
    for (std::size_t m = 0; m < measured_.size(); ++m) {
      if (nodes_[measured_[m].run] == parameters_[i].nodes) take(there, i, m);
    }
  }
  return result;
}

std::vector<double> Learner::left_of(const std::vector<RunResidual>& runs) const {
  std::vector<double> left;
  for (const Measured& one : measured_) left.push_back(one.memory ? *runs[one.run].memory : *runs[one.run].time);
  return left;
}

double Learner::loss(const std::vector<double>& left, const StackSetting& at,
                     const std::function<bool(const Measured&)>& counts) const {
  double sum = 0.0;
  for (std::size_t m = 0; m < measured_.size(); ++m) {
    if (!counts(measured_[m])) continue;
    const double scale = measured_[m].memory ? memory_scale_ : scale_;
    const double in_bends = left[m] / (bend * scale);
    sum += 0.5 * bend * bend * std::log1p(in_bends * in_bends);
  }
  const std::vector<double> pulled = product(prior_, at);
  return sum + 0.5 * std::inner_product(at.begin(), at.end(), pulled.begin(), 0.0);
}

Matrix Learner::curvature(const std::vector<double>& left, const std::function<bool(const Measured&)>& counts) const {
  Matrix sum = prior_;
  for (std::size_t m = 0; m < measured_.size(); ++m) {
    if (!counts(measured_[m])) continue;
    const double w = weight(left[m], measured_[m].memory);
    for (std::size_t i = 0; i < count(); ++i) {
      for (std::size_t j = 0; j < count(); ++j) sum[i][j] += w * lines_.slope[m][i] * lines_.slope[m][j];
    }
  }
  return sum;
}

StackSetting Learner::best_of_lines(const std::function<bool(const Measured&)>& counts) const {
  constexpr int rounds = 30;  // of reweighting
  StackSetting at = lines_.at;
  std::vector<double> left = lines_.left;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> pull = product(prior_, at);
    for (std::size_t m = 0; m < measured_.size(); ++m) {
      if (!counts(measured_[m])) continue;
      const double w = weight(left[m], measured_[m].memory);
      for (std::size_t i = 0; i < count(); ++i) pull[i] += w * lines_.slope[m][i] * left[m];
    }
    const std::optional<Matrix> spread = inverse(curvature(left, counts));
    if (!spread) break;
    const std::vector<double> step = product(*spread, pull);
    for (std::size_t i = 0; i < count(); ++i) {
      at[i] -= step[i];
      if (parameters_[i].not_negative) at[i] = std::max(at[i], 0.0);
    }
    for (std::size_t m = 0; m < measured_.size(); ++m) {
      left[m] = lines_.left[m];
      for (std::size_t i = 0; i < count(); ++i) left[m] += lines_.slope[m][i] * (at[i] - lines_.at[i]);
    }
  }
  return at;
}

/// Gauss-Newton: to the best of the straight lines, half as far while that is no better.
void Learner::search() {
  const auto all = [](const Measured&) { return true; };
  for (int step = 0; step < most_steps; ++step) {
    const double before = loss(lines_.left, lines_.at, all);
    const StackSetting goal = best_of_lines(all);
    StackSetting next = goal;
    std::vector<double> left;
    double after = before;
    for (double part = 1.0; part > 0.1; part *= 0.5) {
      for (std::size_t i = 0; i < count(); ++i) next[i] = lines_.at[i] + part * (goal[i] - lines_.at[i]);
      left = left_at(next);
      after = loss(left, next, all);
      if (after < before) break;
    }
    if (!(after < before)) return;
    lines_ = expand(next, std::move(left));
    if (before - after < 1e-3 * before) return;
  }
}

/// Where a trainer's own code runs: on the host beside kernels, which hide it, or in their way. Runs tell the two apart
/// badly one by one and well together; the search follows each alone, from a value at which it has a slope, and keeps
/// the better.
void Learner::search_either_way() {
  constexpr double begin = 1.5;  // spreads
  const Matrix prior = prior_;
  std::optional<Expansion> best;
  double least = 0.0;
  Matrix best_prior;
  for (const auto kept : {StackParameter::Kind::layer_dispatch, StackParameter::Kind::layer_overhead}) {
    prior_ = prior;
    StackSetting start(count(), 0.0);
    for (std::size_t i = 0; i < count(); ++i) {
      const StackParameter::Kind kind = parameters_[i].kind;
      if (kind == kept) {
        start[i] = begin * parameters_[i].spread;
      } else if (kind == StackParameter::Kind::layer_dispatch || kind == StackParameter::Kind::layer_overhead) {
        prior_[i][i] += held;
      }
    }
    lines_ = expand(start, left_at(start));
    search();
    const double reached = loss(lines_.left, lines_.at, [](const Measured&) { return true; });
    if (best && reached >= least) continue;
    least = reached;
    best = std::move(lines_);
    best_prior = prior_;
  }
  lines_ = std::move(*best);
  prior_ = best_prior;
}

void Learner::take_scale() {
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

LearnedErrors Learner::errors_of(const std::vector<double>& left) const {
  std::vector<double> steps, memory;
  for (std::size_t m = 0; m < measured_.size(); ++m) {
    (measured_[m].memory ? memory : steps).push_back(std::abs(std::expm1(left[m])));
  }
  const auto mean = [](const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0) / number(all.size());
  };
  LearnedErrors errors{mean(steps), median(steps)};
  if (!memory.empty()) errors.memory = mean(memory);
  return errors;
}

std::vector<double> Learner::left_out(const std::vector<int>& part_of_run) const {
  const std::set<int> parts(part_of_run.begin(), part_of_run.end());
  std::vector<StackSetting> settings(nodes_.size());
  for (const int part : parts) {
    const StackSetting others = best_of_lines([&](const Measured& one) { return part_of_run[one.run] != part; });
    for (std::size_t run = 0; run < nodes_.size(); ++run) {
      if (part_of_run[run] == part) settings[run] = others;
    }
  }
  return left_of(predict_(settings));
}

std::vector<std::pair<double, double>> Learner::spreads() const {
  const std::optional<Matrix> after = inverse(curvature(lines_.left, [](const Measured&) { return true; }));
  const std::optional<Matrix> before = inverse(prior_precision(parameters_));
  if (!after || !before) throw InternalError("a prior that leaves a position open");
  std::vector<std::pair<double, double>> result;
  for (std::size_t i = 0; i < count(); ++i) result.emplace_back(std::sqrt((*after)[i][i]), std::sqrt((*before)[i][i]));
  return result;
}

void Learner::leave_undetermined() {
  constexpr double narrowed = 0.8;
  const std::vector<std::pair<double, double>> known = spreads();
  bool any = false;
  for (std::size_t i = 0; i < count(); ++i) {
    if (!is_determined(i) || known[i].first < narrowed * known[i].second) continue;
    prior_[i][i] += held;
    any = true;
  }
  if (!any) return;
  const StackSetting best = best_of_lines([](const Measured&) { return true; });
  lines_ = expand(best, left_at(best));
}

void Learner::describe(LearnedStack& stack) const {
  constexpr double moved = 0.03;
  const std::vector<std::pair<double, double>> known = spreads();
  for (std::size_t i = 0; i < count(); ++i) {
    LearnedParameter learned{parameters_[i], is_determined(i) ? lines_.at[i] : 0.0, known[i].first, 0,
                             is_determined(i)};
    std::set<std::size_t> runs;
    for (std::size_t m = 0; m < measured_.size(); ++m) {
      if (std::abs(lines_.slope[m][i]) * parameters_[i].spread > moved) runs.insert(measured_[m].run);
    }
    learned.runs = static_cast<int>(runs.size());
    stack.parameters.push_back(std::move(learned));
  }
}

LearnedStack Learner::learn() {
  LearnedStack stack;
  const std::vector<RunResidual> assumed = predict_(std::vector(nodes_.size(), StackSetting(count(), 0.0)));
  for (std::size_t run = 0; run < assumed.size(); ++run) {
    if (assumed[run].time) measured_.push_back({run, false});
    if (assumed[run].memory) measured_.push_back({run, true});
  }
  if (std::ranges::all_of(measured_, &Measured::memory)) throw UsageError("no run measures the time of a step");
  stack.assumed = errors_of(left_of(assumed));
  search_either_way();
  take_scale();
  leave_undetermined();
  search();
  stack.fitted = errors_of(lines_.left);
  describe(stack);

  std::vector<int> fifth;
  for (std::size_t run = 0; run < nodes_.size(); ++run) fifth.push_back(static_cast<int>(run % folds));
  const std::vector<double> unseen = left_out(fifth);
  stack.left_out = errors_of(unseen);
  std::vector<double> distances;
  for (std::size_t m = 0; m < measured_.size(); ++m) {
    if (measured_[m].memory) continue;
    distances.push_back(std::abs(unseen[m]));
    if (std::abs(lines_.left[m]) > 4.0 * scale_) stack.unexplained.push_back(measured_[m].run);
  }
  std::ranges::sort(distances);
  const auto ninth = static_cast<std::size_t>(0.9 * number(distances.size()));
  stack.spread = distances[std::min(ninth, distances.size() - 1)];
  if (std::set<int>(nodes_.begin(), nodes_.end()).size() > 1) stack.scaled = errors_of(left_out(nodes_));
  return stack;
}

}  // namespace

LearnedStack learn_stack(const std::vector<StackParameter>& parameters, const std::vector<int>& nodes,
                         const PredictRuns& predict) {
  return Learner(parameters, nodes, predict).learn();
}

}  // namespace foretrain
