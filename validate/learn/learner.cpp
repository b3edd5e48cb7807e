#include "validate/learn/learner.hpp"

#include <Eigen/Cholesky>
#include <cmath>
#include <map>

namespace foretrain {

using Eigen::VectorXd;

namespace {

Eigen::Map<const VectorXd> as_vector(const std::vector<double>& numbers) {
  return {numbers.data(), static_cast<Eigen::Index>(numbers.size())};
}

}  // namespace

/// A run is predicted anew for those parameters alone that may move it, all of them at once: no one waits between.
Expansion Learner::expand(const StackSetting& at, std::vector<double> left) const {
  Expansion result{
      at, std::move(left),
      Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(measured_.size()), static_cast<Eigen::Index>(count()))};
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
          (value_of(moved[known->second], measured_[m]) - result.left[m]) / step_of(i);
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

std::vector<RunResidual> Learner::residuals(const std::function<const StackSetting&(std::size_t run)>& settings) const {
  std::vector<RunAt> asked;
  for (const std::size_t run : counted_runs()) asked.push_back({run, settings(run)});
  return predict_(asked);
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

double Learner::loss(const std::vector<double>& left, const StackSetting& at) const {
  double sum = 0.0;
  for (std::size_t m = 0; m < measured_.size(); ++m) {
    const double scale = measured_[m].memory ? memory_scale_ : scale_;
    const double in_bends = left[m] / (bend * scale);
    sum += 0.5 * bend * bend * std::log1p(in_bends * in_bends);
  }
  return sum + 0.5 * as_vector(at).dot(prior_ * as_vector(at));
}

VectorXd Learner::weights(const VectorXd& left, const Counts& counts) const {
  VectorXd result = VectorXd::Zero(left.size());
  for (Eigen::Index m = 0; m < left.size(); ++m) {
    const Measured& one = measured_[static_cast<std::size_t>(m)];
    const double scale = one.memory ? memory_scale_ : scale_;
    if (counts(one)) result[m] = 1.0 / (scale * scale + left[m] * left[m] / (bend * bend));
  }
  return result;
}

StackSetting Learner::best_of_lines(const Counts& counts) const {
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
void Learner::search() {
  constexpr int most_steps = 6;
  for (int step = 0; step < most_steps; ++step) {
    const double before = loss(lines_.left, lines_.at);
    const StackSetting goal = best_of_lines([](const Measured&) { return true; });
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

}  // namespace foretrain
