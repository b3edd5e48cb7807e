#include "validate/fit/robust_fit.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlopt.hpp>
#include <optional>

#include "model/base/error.hpp"
#include "model/base/text.hpp"

namespace foretrain {

namespace {

constexpr double smooth_below = 0.02;    // of the logarithm
constexpr double difference = 0.01;      // of a constant, for derivatives
constexpr double least_response = 1e-4;  // d ln(time) / d ln(constant) below which a point does not depend on it
constexpr double largest_error = 0.5;    // of a constant, above which it is not determined
constexpr double bound_share = 1e-3;     // of the range, within which a constant is at its bound
constexpr int gauss_newton_steps = 12;
constexpr double first_step = 0.25;    // of a constant, in the first simplex
constexpr double restart_step = 0.08;  // in later ones
constexpr double least_gain = 1e-4;    // relative gain below which the search ends

using Values = std::vector<double>;
using Eigen::Index, Eigen::MatrixXd, Eigen::VectorXd;

/// The fit of one set of constants.
struct Problem {
  Problem(const std::vector<Observation>& observations, const std::vector<std::string>& names, const Calibration& start)
      : points(observations), trial(start), weights(observations.size()) {
    for (const std::string& name : names) rows.push_back(&constant_row(name));
    for (const ConstantRow* row : rows) published.push_back(row->field(trial));
    std::map<std::string, Index> index;
    std::vector<double> size;
    for (const Observation& point : points) {
      group.push_back(index.emplace(point.group, static_cast<Index>(index.size())).first->second);
      size.resize(index.size());
      size[static_cast<std::size_t>(group.back())] += 1.0;
    }
    for (Index p = 0; p < weights.size(); ++p) weights[p] = 1.0 / size[static_cast<std::size_t>(group_of(p))];
    groups = static_cast<Index>(index.size());
  }

  [[nodiscard]] Index group_of(Index point) const { return group[static_cast<std::size_t>(point)]; }
  const Calibration& at(const Values& values) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i]->field(trial) = values[i];
    return trial;
  }
  /// ln(predicted / measured) of every point.
  VectorXd distances(const Values& values) {
    ++evaluations;
    const Calibration& calibration = at(values);
    VectorXd result(points.size());
    for (Index p = 0; p < result.size(); ++p) {
      const Observation& point = points[static_cast<std::size_t>(p)];
      result[p] = std::log(point.predict(calibration) / point.measured);
    }
    return result;
  }
  double loss(const Values& values) {
    return distances(values).unaryExpr(&robust_loss).dot(weights) / static_cast<double>(groups);
  }
  /// Scale of a constant: the larger of its value and the published one, or a hundredth of its range.
  [[nodiscard]] double scale(const Values& values, std::size_t i) const {
    return std::max({std::abs(values[i]), std::abs(published[i]),
                     0.01 * (rows[i]->maximum - rows[i]->minimum) * (values[i] == 0.0 && published[i] == 0.0)});
  }
  /// By point and scaled constant.
  MatrixXd jacobian(const Values& values) {
    MatrixXd slopes(points.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double step = difference * scale(values, i);
      Values low = values, high = values;
      low[i] = std::max(rows[i]->minimum, values[i] - step);
      high[i] = std::min(rows[i]->maximum, values[i] + step);
      slopes.col(static_cast<Index>(i)) = (distances(high) - distances(low)) / (high[i] - low[i]) * scale(values, i);
    }
    return slopes;
  }
  [[nodiscard]] bool at_bound(const Values& values, std::size_t i) const {
    const double near = bound_share * (rows[i]->maximum - rows[i]->minimum);
    return values[i] - rows[i]->minimum < std::min(near, 0.1 * std::abs(published[i])) ||
           rows[i]->maximum - values[i] < near;
  }

  const std::vector<Observation>& points;
  std::vector<const ConstantRow*> rows;
  Calibration trial;
  Values published;
  VectorXd weights;  ///< of each point: groups weigh the same
  std::vector<Index> group;
  Index groups = 0;
  int evaluations = 0;
};

double loss_of_problem(const Values& values, Values& /*gradient*/, void* problem) {
  return static_cast<Problem*>(problem)->loss(values);
}

/// The least loss near `at` by Nelder and Mead's simplices, which are begun anew at the best point until that gains too
/// little, or `budget` evaluations are spent. Same input, same result.
Values searched(Problem& problem, Values at, int budget) {
  nlopt::opt search(nlopt::LN_NELDERMEAD, static_cast<unsigned>(at.size()));
  Values least, most;
  for (std::size_t i = 0; i < at.size(); ++i) {
    least.push_back(problem.rows[i]->minimum);
    most.push_back(problem.rows[i]->maximum);
    at[i] = std::clamp(at[i], least[i], most[i]);
  }
  search.set_lower_bounds(least);
  search.set_upper_bounds(most);
  search.set_ftol_rel(0.1 * least_gain);
  search.set_min_objective(loss_of_problem, &problem);
  double loss = std::numeric_limits<double>::infinity();
  for (double share = first_step; budget > 0; share = restart_step) {
    const double before = loss;
    Values steps;
    for (std::size_t i = 0; i < at.size(); ++i) {
      steps.push_back(share * std::max(std::abs(at[i]), 0.02 * (most[i] - least[i])));
    }
    search.set_initial_step(steps);
    search.set_maxeval(budget);
    search.optimize(at, loss);
    budget -= search.get_numevals();
    if (loss > before * (1.0 - least_gain)) break;
  }
  return at;
}

/// Nothing where a pivot falls below 1e-12 of its diagonal entry: the symmetric matrix is singular for all that double
/// precision can tell.
std::optional<MatrixXd> inverse(const MatrixXd& matrix) {
  constexpr double least_pivot = 1e-12;
  const Eigen::LLT<MatrixXd> factors(matrix);
  const Eigen::ArrayXd pivots = factors.matrixLLT().diagonal().array().square();
  const bool positive = factors.info() == Eigen::Success;
  if (!positive || (pivots <= least_pivot * matrix.diagonal().array().abs()).any()) return std::nullopt;
  return factors.solve(MatrixXd::Identity(matrix.rows(), matrix.cols()));
}

/// One Gauss-Newton step of iteratively reweighted least squares, halved until it gains. Nothing where none does.
std::optional<Values> better(Problem& problem, const Values& values) {
  const VectorXd distances = problem.distances(values);
  const MatrixXd jacobian = problem.jacobian(values);
  const VectorXd weights = problem.weights.cwiseQuotient(distances.unaryExpr(&robust_loss));
  const MatrixXd normal = jacobian.transpose() * weights.asDiagonal() * jacobian;
  const VectorXd step = normal.ldlt().solve(jacobian.transpose() * weights.cwiseProduct(distances));
  const double before = problem.loss(values);
  for (double share = 1.0; share > 0.05; share *= 0.5) {
    Values next = values;
    for (std::size_t i = 0; i < next.size(); ++i) {
      next[i] -= share * step[static_cast<Index>(i)] * problem.scale(values, i);
      next[i] = std::clamp(next[i], problem.rows[i]->minimum, problem.rows[i]->maximum);
    }
    if (problem.loss(next) < before * (1.0 - 1e-7)) return next;
  }
  return std::nullopt;
}

Values minimum_of(Problem& problem, const Values& start, int budget) {
  Values values = searched(problem, start, budget);
  for (int step = 0; step < gauss_newton_steps; ++step) {
    const auto next = better(problem, values);
    if (!next) break;
    values = *next;
  }
  return values;
}

/// Covariance of the constants of `free`, in their units. Nothing where the points leave a direction open.
std::optional<MatrixXd> covariance_of(Problem& problem, const Values& values, const std::vector<std::size_t>& free) {
  const VectorXd distances = problem.distances(values), weights = problem.weights;
  const auto points = static_cast<double>(problem.points.size());
  const double spare = points - static_cast<double>(free.size());
  if (spare < 1.0) return std::nullopt;
  VectorXd slope = VectorXd::Zero(problem.groups), square_of_psi = slope;
  for (Index p = 0; p < distances.size(); ++p) {
    const double loss = robust_loss(distances[p]);
    slope[problem.group_of(p)] += smooth_below * smooth_below / (loss * loss * loss) * weights[p];
    square_of_psi[problem.group_of(p)] += distances[p] * distances[p] / (loss * loss) * weights[p] * points / spare;
  }
  VectorXd of_a = weights, of_b = weights.cwiseAbs2(), scale(free.size());
  for (Index p = 0; p < distances.size(); ++p) {
    of_a[p] *= slope[problem.group_of(p)];
    of_b[p] *= square_of_psi[problem.group_of(p)];
  }
  for (Index i = 0; i < scale.size(); ++i) scale[i] = problem.scale(values, free[static_cast<std::size_t>(i)]);
  const MatrixXd jacobian = problem.jacobian(values)(Eigen::all, free);
  const auto inverted = inverse(jacobian.transpose() * of_a.asDiagonal() * jacobian);
  if (!inverted) return std::nullopt;
  const MatrixXd scaled = *inverted * jacobian.transpose();
  return scale.asDiagonal() * (scaled * of_b.asDiagonal() * scaled.transpose()) * scale.asDiagonal();
}

/// The constant that the points determine least, as its part of a singular direction or its relative error; nothing
/// where all are determined.
struct Worst {
  std::size_t index = 0;
  std::string why;
};
std::optional<Worst> worst_of(Problem& problem, const Values& values, const std::vector<std::size_t>& free,
                              const std::optional<MatrixXd>& covariance) {
  if (free.empty()) return std::nullopt;
  if (!covariance) {
    const bool few = problem.points.size() <= free.size();
    // Least information of its own.
    const VectorXd norms = problem.jacobian(values).colwise().squaredNorm();
    const auto norm = [&](std::size_t i) { return norms[static_cast<Index>(i)]; };
    return Worst{*std::ranges::min_element(free, [&](auto i, auto j) { return norm(i) < norm(j); }),
                 few ? "too few measured points" : "the measurements do not separate it from other constants"};
  }
  Worst worst;
  double error = 0.0;
  for (std::size_t k = 0; k < free.size(); ++k) {
    const double variance = covariance->diagonal()[static_cast<Index>(k)];
    const double relative = std::sqrt(std::max(0.0, variance)) / problem.scale(values, free[k]);
    if (relative > error || !std::isfinite(relative)) {
      error = std::isfinite(relative) ? relative : 1e9;
      worst.index = free[k];
    }
  }
  if (error <= largest_error) return std::nullopt;
  worst.why = fmt::format("standard error {:.0f} %", std::min(error, 99.0) * 100.0);
  return worst;
}

/// Constants on which a point depends.
std::vector<std::string> with_response(const std::vector<Observation>& points, const std::vector<std::string>& names,
                                       const Calibration& start, std::vector<Undetermined>& undetermined) {
  Problem problem(points, names, start);
  const VectorXd responses = problem.jacobian(problem.published).colwise().lpNorm<Eigen::Infinity>();
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (responses[static_cast<Index>(i)] > least_response) {
      kept.push_back(names[i]);
    } else {
      undetermined.push_back({names[i], "no measured point depends on it"});
    }
  }
  return kept;
}

}  // namespace

const ConstantRow& constant_row(const std::string& name) {
  std::vector<std::string> known;
  for (const ConstantRow& row : calibration_rows()) {
    if (row.name == name) return row;
    known.push_back(row.name);
  }
  const auto nearest = nearest_word(name, known);
  throw UsageError("unknown constant " + name + (nearest ? "; did you mean " + *nearest + "?" : ""));
}

std::string energy_name(std::size_t generation, bool tensor) {
  return "power." + std::string(chip_generations[generation].name) + (tensor ? "_tensor_pj" : "_vector_pj");
}

double robust_loss(double distance) { return std::hypot(distance, smooth_below); }

RobustFit robust_fit(const std::vector<Observation>& points, const std::vector<std::string>& constants,
                     const Calibration& start, int budget) {
  RobustFit result;
  result.calibration = start;
  std::vector<std::string> names = with_response(points, constants, start, result.undetermined);
  Values values;
  for (const std::string& name : names) values.push_back(constant_row(name).field(result.calibration));
  while (!names.empty()) {
    Problem problem(points, names, start);
    values = minimum_of(problem, values, budget);
    std::vector<std::size_t> all, free;
    for (std::size_t i = 0; i < names.size(); ++i) {
      all.push_back(i);
      if (!problem.at_bound(values, i)) free.push_back(i);
    }
    if (const auto worst = worst_of(problem, values, all, covariance_of(problem, values, all))) {
      result.undetermined.push_back({names[worst->index], worst->why});
      names.erase(names.begin() + static_cast<std::ptrdiff_t>(worst->index));
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(worst->index));
      result.evaluations += problem.evaluations;
      continue;
    }
    const auto covariance = covariance_of(problem, values, free);
    result.evaluations += problem.evaluations;
    result.calibration = problem.at(values);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto place = std::ranges::find(free, i);
      RobustConstant constant{names[i], problem.published[i], values[i], 0.0, place == free.end()};
      if (!constant.at_bound) {
        constant.standard_error = std::sqrt(covariance->diagonal()[place - free.begin()]);
        result.covariance_names.push_back(names[i]);
      }
      result.constants.push_back(constant);
    }
    if (covariance) result.covariance = *covariance;
    break;
  }
  return result;
}

}  // namespace foretrain
