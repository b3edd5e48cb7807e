#include "validate/learn/learn.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/statistics.hpp"
#include "validate/learn/choices.hpp"

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

double value_of(const RunResidual& residual, const Measured& one) {
  return one.memory ? *residual.memory : *residual.time;
}

/// Residuals and their derivatives at a setting.
struct Expansion {
  StackSetting at;
  std::vector<double> left;                ///< of each measured number
  std::vector<std::vector<double>> slope;  ///< of each measured number by each parameter
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
  [[nodiscard]] std::vector<double> left_at(const StackSetting& setting) const { return left_of(residuals_at(setting)); }
  /// The runs that something was measured of and that count now.
  [[nodiscard]] std::vector<std::size_t> counted_runs() const;
  /// `left`: what the setting leaves.
  [[nodiscard]] Expansion expand(const StackSetting& at, std::vector<double> left) const;
  [[nodiscard]] bool is_determined(std::size_t i) const { return prior_[i][i] < held; }
  void search();
  void choose();
  [[nodiscard]] StackSetting searched_with(StackParameter::Kind kept, double& reached);
  /// Of positions, and of what was chosen.
  [[nodiscard]] std::vector<RunResidual> ask(std::vector<RunAt> asked) const;
  /// The measured numbers of every so manieth run, so that there are no more than `most`.
  void count_every(std::size_t most);
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
  /// What each run leaves, predicted by what is learned without the runs of its part.
  [[nodiscard]] std::vector<RunResidual> left_out(const std::vector<int>& part_of_run) const;

  const std::vector<StackParameter>& parameters_;
  const std::vector<LearnedRun>& runs_;
  const PredictRuns& predict_;
  Matrix prior_;
  std::vector<Measured> measured_;  ///< those that count now
  std::vector<Measured> all_;
  Expansion lines_;
  double scale_ = first_scale, memory_scale_ = first_scale;
  bool gathered_ = false;  ///< tensor ranks keep what they gathered
};

/// A run is predicted anew for those parameters alone that may move it, all of them at once: no one waits between.
Expansion Learner::expand(const StackSetting& at, std::vector<double> left) const {
  Expansion result{at, std::move(left), std::vector(measured_.size(), std::vector(count(), 0.0))};
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
  const std::vector<RunResidual> moved = ask(std::move(asked));
  for (std::size_t m = 0; m < measured_.size(); ++m) {
    for (std::size_t i = 0; i < count(); ++i) {
      const auto known = place.find({measured_[m].run, i});
      if (known == place.end()) continue;
      result.slope[m][i] = (value_of(moved[known->second], measured_[m]) - result.left[m]) / step_of(i);
    }
  }
  return result;
}

std::vector<std::size_t> Learner::counted_runs() const {
  std::vector<std::size_t> runs;
  for (const Measured& one : measured_) {
    if (runs.empty() || runs.back() != one.run) runs.push_back(one.run);
  }
  return runs;
}

std::vector<RunResidual> Learner::residuals(
    const std::function<const StackSetting&(std::size_t run)>& settings) const {
  std::vector<RunAt> asked;
  for (const std::size_t run : counted_runs()) asked.push_back({run, settings(run)});
  return ask(std::move(asked));
}

std::vector<double> Learner::left_of(const std::vector<RunResidual>& residuals) const {
  const std::vector<std::size_t> runs = counted_runs();
  std::vector<double> left;
  std::size_t of_run = 0;
  for (const Measured& one : measured_) {
    while (runs[of_run] != one.run) ++of_run;
    left.push_back(value_of(residuals[of_run], one));
  }
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
      at[i] = std::max(at[i], parameters_[i].least);
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

std::vector<RunResidual> Learner::ask(std::vector<RunAt> asked) const {
  for (std::size_t i = 0; i < count(); ++i) {
    if (parameters_[i].kind != StackParameter::Kind::keep_gathered) continue;
    for (RunAt& one : asked) one.setting[i] = gathered_ ? 1.0 : 0.0;
  }
  return predict_(asked);
}

StackSetting Learner::searched_with(StackParameter::Kind kept, double& reached) {
  constexpr double begin = 1.5;  // spreads
  StackSetting start(count(), 0.0);
  prior_ = prior_precision(parameters_);
  for (std::size_t i = 0; i < count(); ++i) {
    const StackParameter::Kind kind = parameters_[i].kind;
    if (kind == kept) {
      start[i] = begin * parameters_[i].spread;
    } else if (kind == StackParameter::Kind::layer_dispatch || kind == StackParameter::Kind::layer_overhead) {
      prior_[i][i] += held;
    } else if (kind == StackParameter::Kind::peer_dispatch) {
      start[i] = parameters_[i].spread;  // hidden by kernels below
    } else if (kind == StackParameter::Kind::keep_gathered) {
      prior_[i][i] += held;
    }
  }
  lines_ = expand(start, left_at(start));
  search();
  reached = loss(lines_.left, lines_.at, [](const Measured&) { return true; });
  return lines_.at;
}

/// Where a trainer's own code runs: on the host beside kernels, which hide it, or in their way. Runs tell the two apart
/// badly one by one and well together; the search follows each alone, from a value at which it has a slope, and keeps
/// the better. So it does of what tensor ranks keep, which is one or the other. A hundred runs tell.
void Learner::choose() {
  using Kind = StackParameter::Kind;
  constexpr std::size_t enough = 100;
  count_every(enough);
  double least = 0.0, other = 0.0;
  StackSetting best = searched_with(Kind::layer_dispatch, least);
  Kind kept = Kind::layer_dispatch;
  if (StackSetting overhead = searched_with(Kind::layer_overhead, other); other < least) {
    best = std::move(overhead);
    least = other;
    kept = Kind::layer_overhead;
  }
  if (std::ranges::any_of(parameters_, [](const auto& one) { return one.kind == Kind::keep_gathered; })) {
    gathered_ = true;
    StackSetting whole = searched_with(kept, other);
    gathered_ = other < least;
    if (gathered_) best = std::move(whole);
  }
  prior_ = prior_precision(parameters_);
  for (std::size_t i = 0; i < count(); ++i) {
    const Kind kind = parameters_[i].kind;
    const bool left = kind != kept && (kind == Kind::layer_dispatch || kind == Kind::layer_overhead);
    if (left || kind == Kind::keep_gathered) prior_[i][i] += held;
  }
  measured_ = all_;
  lines_ = expand(best, left_at(best));
  search();
}

void Learner::count_every(std::size_t most) {
  const std::size_t stride = (runs_.size() + most - 1) / most;
  std::erase_if(measured_, [&](const Measured& one) { return one.run % stride != 0; });
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

std::vector<RunResidual> Learner::left_out(const std::vector<int>& part_of_run) const {
  const std::set<int> parts(part_of_run.begin(), part_of_run.end());
  std::vector<StackSetting> settings(runs_.size());
  for (const int part : parts) {
    const StackSetting others = best_of_lines([&](const Measured& one) { return part_of_run[one.run] != part; });
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      if (part_of_run[run] == part) settings[run] = others;
    }
  }
  return residuals([&](std::size_t run) -> const StackSetting& { return settings[run]; });
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
    if (parameters_[i].kind == StackParameter::Kind::keep_gathered) {
      learned.position = gathered_ ? 1.0 : 0.0;
      learned.determined = gathered_;
    }
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
  describe(stack);

  const std::vector<std::size_t> counted = counted_runs();
  std::vector<LearnedRun> of_counted;
  std::vector<RunResidual> before;
  std::vector<int> fifth(runs_.size()), nodes(runs_.size());
  for (const std::size_t run : counted) {
    of_counted.push_back(runs_[run]);
    before.push_back(assumed[run]);
    fifth[run] = static_cast<int>(run % folds);
    nodes[run] = runs_[run].nodes;
  }
  const auto errors = [&](const std::vector<RunResidual>& left) {
    return learned_errors(of_counted, left, memory_scale_);
  };
  const std::vector<RunResidual> unseen = left_out(fifth);
  stack.assumed = errors(before);
  stack.fitted = errors(residuals_at(lines_.at));
  stack.left_out = errors(unseen);
  if (std::set<int>(nodes.begin(), nodes.end()).size() > 1) stack.scaled = errors(left_out(nodes));

  std::vector<double> distances;
  for (const RunResidual& one : unseen) {
    if (one.time) distances.push_back(std::abs(*one.time));
  }
  std::ranges::sort(distances);
  const auto ninth = static_cast<std::size_t>(0.9 * number(distances.size()));
  stack.spread = distances[std::min(ninth, distances.size() - 1)];
  for (std::size_t m = 0; m < measured_.size(); ++m) {
    if (!measured_[m].memory && std::abs(lines_.left[m]) > 4.0 * scale_) stack.unexplained.push_back(measured_[m].run);
  }
  return stack;
}

}  // namespace

LearnedStack learn_stack(const std::vector<StackParameter>& parameters, const std::vector<LearnedRun>& runs,
                         const PredictRuns& predict) {
  return Learner(parameters, runs, predict).learn();
}

}  // namespace foretrain
