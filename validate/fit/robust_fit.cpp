#include "validate/fit/robust_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "model/base/error.hpp"
#include "validate/fit/constant_row.hpp"

namespace foretrain {

namespace {

constexpr double smooth_below = 0.02;    // of the logarithm
constexpr double difference = 0.01;      // of a constant, for derivatives
constexpr double least_response = 1e-4;  // d ln(time) / d ln(constant) below which a point does not depend on it
constexpr double largest_error = 0.5;    // of a constant, above which it is not determined
constexpr double bound_share = 1e-3;     // of the range, within which a constant is at its bound
constexpr int gauss_newton_steps = 12;

using Values = std::vector<double>;

/// The fit of one set of constants.
class Problem {
 public:
  Problem(const std::vector<Observation>& points, std::vector<const ConstantRow*> rows, const Calibration& start)
      : points_(points), rows_(std::move(rows)), trial_(start) {
    std::map<std::string, std::size_t> index;
    for (const Observation& point : points_) {
      group_.push_back(index.emplace(point.group, index.size()).first->second);
      if (group_.back() == size_.size()) size_.push_back(0.0);
      size_[group_.back()] += 1.0;
    }
    for (const ConstantRow* row : rows_) published_.push_back(row->field(trial_));
  }

  [[nodiscard]] std::size_t constants() const { return rows_.size(); }
  [[nodiscard]] const ConstantRow& row(std::size_t i) const { return *rows_[i]; }
  [[nodiscard]] const Values& published() const { return published_; }
  [[nodiscard]] std::size_t groups() const { return size_.size(); }
  [[nodiscard]] std::size_t group_of(std::size_t point) const { return group_[point]; }
  [[nodiscard]] double size_of(std::size_t group) const { return size_[group]; }
  [[nodiscard]] std::size_t points() const { return points_.size(); }

  const Calibration& at(const Values& values) {
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i]->field(trial_) = values[i];
    return trial_;
  }
  /// ln(predicted / measured) of every point.
  Values distances(const Values& values) {
    const Calibration& calibration = at(values);
    Values result;
    result.reserve(points_.size());
    for (const Observation& point : points_) result.push_back(std::log(point.predict(calibration) / point.measured));
    return result;
  }
  double loss(const Values& values) {
    const Values distances_here = distances(values);
    double sum = 0.0;
    for (std::size_t p = 0; p < points_.size(); ++p) {
      sum += robust_loss(distances_here[p]) / size_[group_[p]];
    }
    return sum / static_cast<double>(size_.size());
  }
  /// What a constant is measured by: the larger of its value and the published one, or a hundredth of its range.
  [[nodiscard]] double scale(const Values& values, std::size_t i) const {
    return std::max({std::abs(values[i]), std::abs(published_[i]),
                     0.01 * (rows_[i]->maximum - rows_[i]->minimum) * (values[i] == 0.0 && published_[i] == 0.0)});
  }
  /// Columns of the Jacobian by scaled constants.
  std::vector<Values> jacobian(const Values& values) {
    std::vector<Values> columns;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double step = difference * scale(values, i);
      Values low = values, high = values;
      low[i] = std::max(rows_[i]->minimum, values[i] - step);
      high[i] = std::min(rows_[i]->maximum, values[i] + step);
      const Values below = distances(low);
      Values column = distances(high);
      for (std::size_t p = 0; p < column.size(); ++p) {
        column[p] = (column[p] - below[p]) / (high[i] - low[i]) * scale(values, i);
      }
      columns.push_back(std::move(column));
    }
    return columns;
  }
  [[nodiscard]] bool at_bound(const Values& values, std::size_t i) const {
    const double near = bound_share * (rows_[i]->maximum - rows_[i]->minimum);
    return values[i] - rows_[i]->minimum < std::min(near, 0.1 * std::abs(published_[i])) ||
           rows_[i]->maximum - values[i] < near;
  }

 private:
  const std::vector<Observation>& points_;
  std::vector<const ConstantRow*> rows_;
  Calibration trial_;
  Values published_;
  std::vector<std::size_t> group_;
  Values size_;
};

std::vector<const ConstantRow*> rows_named(const std::vector<std::string>& names) {
  std::vector<const ConstantRow*> rows;
  rows.reserve(names.size());
  for (const std::string& name : names) rows.push_back(&constant_row(name));
  return rows;
}

Minimum searched(Problem& problem, const Values& start, int budget) {
  std::vector<SearchVariable> variables;
  for (std::size_t i = 0; i < problem.constants(); ++i) {
    variables.push_back({start[i], problem.row(i).minimum, problem.row(i).maximum});
  }
  return minimise([&](const Values& values) { return problem.loss(values); }, variables, budget);
}

/// One Gauss-Newton step of iteratively reweighted least squares, halved until it gains. Nothing where none does.
std::optional<Values> better(Problem& problem, const Values& values) {
  const Values distances = problem.distances(values);
  const std::vector<Values> jacobian = problem.jacobian(values);
  const std::size_t n = problem.constants();
  Matrix normal = square(n);
  Values gradient(n, 0.0);
  for (std::size_t p = 0; p < problem.points(); ++p) {
    const double weight = 1.0 / (robust_loss(distances[p]) * problem.size_of(problem.group_of(p)));
    for (std::size_t i = 0; i < n; ++i) {
      gradient[i] += weight * jacobian[i][p] * distances[p];
      for (std::size_t j = 0; j < n; ++j) normal[i][j] += weight * jacobian[i][p] * jacobian[j][p];
    }
  }
  for (std::size_t i = 0; i < n; ++i) normal[i][i] *= 1.0 + 1e-9;
  const auto inverted = inverse(normal);
  if (!inverted) return std::nullopt;
  const Values step = product(*inverted, gradient);
  const double before = problem.loss(values);
  for (double share = 1.0; share > 0.05; share *= 0.5) {
    Values next = values;
    for (std::size_t i = 0; i < n; ++i) {
      next[i] = std::clamp(values[i] - share * step[i] * problem.scale(values, i), problem.row(i).minimum,
                           problem.row(i).maximum);
    }
    if (problem.loss(next) < before * (1.0 - 1e-7)) return next;
  }
  return std::nullopt;
}

Values minimum_of(Problem& problem, const Values& start, int budget) {
  Values values = searched(problem, start, budget).at;
  for (int step = 0; step < gauss_newton_steps; ++step) {
    const auto next = better(problem, values);
    if (!next) break;
    values = *next;
  }
  return values;
}

/// Covariance of the constants of `free`, in their units. Nothing where the points leave a direction open.
std::optional<Matrix> covariance_of(Problem& problem, const Values& values, const std::vector<std::size_t>& free) {
  const Values distances = problem.distances(values);
  const std::vector<Values> jacobian = problem.jacobian(values);
  const auto points = static_cast<double>(problem.points());
  const double spare = points - static_cast<double>(free.size());
  if (spare < 1.0) return std::nullopt;
  Values slope(problem.groups(), 0.0), square_of_psi(problem.groups(), 0.0);
  for (std::size_t p = 0; p < problem.points(); ++p) {
    const double loss = robust_loss(distances[p]);
    const std::size_t g = problem.group_of(p);
    slope[g] += smooth_below * smooth_below / (loss * loss * loss) / problem.size_of(g);
    square_of_psi[g] += distances[p] * distances[p] / (loss * loss) / problem.size_of(g) * points / spare;
  }
  Matrix a = square(free.size()), b = square(free.size());
  for (std::size_t p = 0; p < problem.points(); ++p) {
    const std::size_t g = problem.group_of(p);
    const double weight = 1.0 / problem.size_of(g);
    for (std::size_t i = 0; i < free.size(); ++i) {
      for (std::size_t j = 0; j < free.size(); ++j) {
        const double both = jacobian[free[i]][p] * jacobian[free[j]][p];
        a[i][j] += weight * slope[g] * both;
        b[i][j] += weight * weight * square_of_psi[g] * both;
      }
    }
  }
  const auto inverted = inverse(a);
  if (!inverted) return std::nullopt;
  Matrix covariance = product(product(*inverted, b), *inverted);
  for (std::size_t i = 0; i < free.size(); ++i) {
    for (std::size_t j = 0; j < free.size(); ++j) {
      covariance[i][j] *= problem.scale(values, free[i]) * problem.scale(values, free[j]);
    }
  }
  return covariance;
}

/// The constant that the points determine least, as its part of a singular direction or its relative error; nothing
/// where all are determined.
struct Worst {
  std::size_t index = 0;
  std::string why;
};
std::optional<Worst> worst_of(Problem& problem, const Values& values, const std::vector<std::size_t>& free,
                              const std::optional<Matrix>& covariance) {
  if (free.empty()) return std::nullopt;
  if (!covariance) {
    const bool few = problem.points() <= free.size();
    // Least information of its own.
    const std::vector<Values> jacobian = problem.jacobian(values);
    const auto norm = [&](std::size_t i) {
      double sum = 0.0;
      for (const double slope : jacobian[i]) sum += slope * slope;
      return sum;
    };
    return Worst{*std::min_element(free.begin(), free.end(), [&](auto i, auto j) { return norm(i) < norm(j); }),
                 few ? "too few measured points" : "the measurements do not tell it apart from other constants"};
  }
  Worst worst;
  double error = 0.0;
  for (std::size_t k = 0; k < free.size(); ++k) {
    const double relative = std::sqrt(std::max(0.0, (*covariance)[k][k])) / problem.scale(values, free[k]);
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
  Problem problem(points, rows_named(names), start);
  const std::vector<Values> jacobian = problem.jacobian(problem.published());
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool responds = std::any_of(jacobian[i].begin(), jacobian[i].end(),
                                      [](double slope) { return std::abs(slope) > least_response; });
    if (responds) {
      kept.push_back(names[i]);
    } else {
      undetermined.push_back({names[i], "no measured point depends on it"});
    }
  }
  return kept;
}

}  // namespace

double robust_loss(double distance) { return std::hypot(distance, smooth_below); }

Minimum least_loss(const std::vector<Observation>& points, const std::vector<std::string>& constants,
                   const Calibration& start, int budget) {
  Problem problem(points, rows_named(constants), start);
  return searched(problem, problem.published(), budget);
}

RobustFit robust_fit(const std::vector<Observation>& points, const std::vector<std::string>& constants,
                     const Calibration& start, int budget) {
  RobustFit result{start, {}, {}, {}, {}};
  std::vector<std::string> names = with_response(points, constants, start, result.undetermined);
  Values values;
  for (const std::string& name : names) values.push_back(constant_row(name).field(result.calibration));
  while (!names.empty()) {
    Problem problem(points, rows_named(names), start);
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
      continue;
    }
    const auto covariance = covariance_of(problem, values, free);
    result.calibration = problem.at(values);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto place = std::find(free.begin(), free.end(), i);
      RobustConstant constant{names[i], problem.published()[i], values[i], 0.0, place == free.end()};
      if (!constant.at_bound) {
        const auto k = static_cast<std::size_t>(place - free.begin());
        constant.standard_error = std::sqrt((*covariance)[k][k]);
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
