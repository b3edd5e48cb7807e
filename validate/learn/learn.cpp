#include "validate/learn/learn.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/statistics.hpp"
#include "model/memory/shortage.hpp"
#include "validate/learn/choices.hpp"
#include "validate/learn/learner.hpp"

namespace foretrain {

namespace {

/// Whether it is what a trainer's own code takes, on the host beside kernels or in their way.
bool is_of_code(const StackParameter& parameter) {
  return parameter.name == layer_dispatch_key || parameter.name == layer_overhead_key;
}

/// How far off the steps are that were measured: |ln(predicted / measured)|.
std::vector<double> step_distances(const std::vector<RunResidual>& residuals) {
  std::vector<double> distances;
  for (const RunResidual& one : residuals) {
    if (one.time) distances.push_back(std::abs(*one.time));
  }
  return distances;
}

/// By more than the standard error of the mean difference (the one-standard-error rule: Breiman, Friedman, Olshen and
/// Stone, Classification and Regression Trees, 1984, section 3.4.3).
bool clearly_less(const std::vector<double>& errors, const std::vector<double>& others) {
  const auto count = static_cast<double>(errors.size());
  std::vector<double> gains, squares;
  for (std::size_t i = 0; i < errors.size(); ++i) gains.push_back(others[i] - errors[i]);
  const double gain = mean(gains);
  for (const double one : gains) squares.push_back((one - gain) * (one - gain));
  return count > 1.0 && gain > std::sqrt(mean(squares) / (count - 1.0));
}

/// Within what the next of these will lie nine times of ten: it is as likely to be the farthest as any of them, so the
/// smallest that no more than a tenth of n + 1 exceed (Vovk, Gammerman and Shafer, Algorithmic Learning in a Random
/// World, 2005, section 2.2.3). The quantile of the n themselves holds 84 of 100 where n is 30.
double nine_of_ten(std::vector<double> distances) {
  if (distances.empty()) return 0.0;
  std::ranges::sort(distances);
  const auto rank = static_cast<std::size_t>(std::ceil(0.9 * (number(distances.size()) + 1.0)));
  return distances[std::min(rank, distances.size()) - 1];
}

}  // namespace

StackSetting Learner::searched_with(const std::string& kept, double& reached) {
  constexpr double begin = 1.5;  // spreads
  StackSetting start(count(), 0.0);
  prior_ = prior_precision(parameters_);
  for (std::size_t i = 0; i < count(); ++i) {
    if (parameters_[i].name == kept) {
      start[i] = begin * parameters_[i].spread;
    } else if (is_of_code(parameters_[i])) {
      precision(i) += held;
    } else if (parameters_[i].name == "workload.train.peer_dispatch") {
      start[i] = parameters_[i].spread;  // hidden by kernels below
    }
  }
  lines_ = expand(start, left_at(start));
  search();
  reached = loss(lines_.left, lines_.at);
  return lines_.at;
}

/// Where a trainer's own code runs: on the host beside kernels, which hide it, or in their way. Runs tell the two apart
/// badly one by one and well together; the search follows each alone, from a value at which it has a slope, and keeps
/// the better. A hundred runs tell.
void Learner::choose() {
  constexpr std::size_t enough = 100;
  count_every(enough);
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
  const Eigen::Map<const Eigen::VectorXd> left(lines_.left.data(), lines_.slope.rows());
  const Eigen::MatrixXd after = curvature(weights(left, [](const Measured&) { return true; })).inverse();
  const Eigen::MatrixXd before = prior_precision(parameters_).inverse();
  std::vector<std::pair<double, double>> result;
  for (Eigen::Index i = 0; i < prior_.rows(); ++i) {
    result.emplace_back(std::sqrt(after(i, i)), std::sqrt(before(i, i)));
  }
  return result;
}

void Learner::leave_undetermined() {
  constexpr double narrowed = 0.8;
  const std::vector<std::pair<double, double>> known = spreads();
  bool any = false;
  for (std::size_t i = 0; i < count(); ++i) {
    if (!is_determined(i) || known[i].first < narrowed * known[i].second) continue;
    precision(i) += held;
    any = true;
  }
  if (!any) return;
  const StackSetting best = best_of_lines([](const Measured&) { return true; });
  lines_ = expand(best, left_at(best));
}

void Learner::simplify(const std::vector<double>& assumed) {
  constexpr std::size_t few = 40;
  if (runs_.size() > few) return;
  const std::vector<double> by_traits = step_distances(left_out(fifths()));
  Eigen::MatrixXd prior = prior_;
  Expansion lines = lines_;
  StackSetting start = lines_.at;
  for (std::size_t i = 0; i < count(); ++i) {
    if (parameters_[i].of_memory || parameters_[i].name == "step.kernel_stretch") continue;
    if (is_determined(i)) precision(i) += held;
    start[i] = 0.0;
  }
  lines_ = expand(start, left_at(start));
  search();
  if (!clearly_less(by_traits, assumed) || !clearly_less(by_traits, step_distances(left_out(fifths())))) return;
  prior_ = std::move(prior);
  lines_ = std::move(lines);
}

void Learner::describe(LearnedStack& stack) const {
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
  simplify(step_distances(assumed));
  describe(stack);

  const std::vector<std::size_t> counted = counted_runs();
  std::vector<LearnedRun> of_counted;
  std::vector<RunResidual> before;
  std::vector<int> nodes(runs_.size());
  for (const std::size_t run : counted) {
    of_counted.push_back(runs_[run]);
    before.push_back(assumed[run]);
    nodes[run] = runs_[run].nodes;
  }
  const std::vector<RunResidual> unseen = left_out(fifths());
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
  for (std::size_t i = 0; i < counted.size(); ++i) stack.cases.push_back({counted[i], before[i], fitted[i], unseen[i]});
  stack.assumed = errors(before);
  stack.fitted = errors(fitted);
  stack.left_out = errors(unseen);
  if (std::set<int>(nodes.begin(), nodes.end()).size() > 1) stack.scaled = errors(left_out(nodes));

  for (std::size_t m = 0; m < measured_.size(); ++m) {
    if (!measured_[m].memory && std::abs(lines_.left[m]) > 4.0 * scale_) stack.unexplained.push_back(measured_[m].run);
  }
  return stack;
}

LearnedStack learn_stack(const std::vector<StackParameter>& parameters, const std::vector<LearnedRun>& runs,
                         const PredictRuns& predict) {
  return Learner(parameters, runs, predict).learn();
}

}  // namespace foretrain
