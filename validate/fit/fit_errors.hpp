// Errors of predictions at the measured points.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

struct PointPair {
  std::string name, group;
  std::string family;  ///< of the operator; of `foretrain fit` the GPU
  bool held_out = false;
  Seconds measured, predicted;
};

/// Errors of one group of points, fitted or held out: of predicted / measured − 1.
struct PointErrors {
  std::string group, family;
  bool held_out = false;
  int points = 0;
  double mape = 0.0, bias = 0.0, worst = 0.0;
  std::string worst_point = {};
};

/// In the order of the groups' first points.
std::vector<PointErrors> errors_of(const std::vector<PointPair>& pairs);

/// Number and MAPE of all points of the wanted groups; 0 where there are none.
PointErrors together(const std::vector<PointErrors>& errors, const std::function<bool(const PointErrors&)>& wanted);

/// By family; of points held out where there are enough of them, else of all.
std::map<std::string, double> spreads_of(const std::vector<PointPair>& pairs);

/// Accuracy that a calibration should reach.
struct AccuracyBar {
  std::string name;       ///< "GEMMs"
  double limit = 0.0;     ///< MAPE
  int points = 0;         ///< 0: nothing of this was measured
  bool held_out = false;  ///< false: none was held out, and the points are those that were fitted
  double mape = 0.0;

  [[nodiscard]] bool met() const { return points > 0 && mape <= limit; }
};
std::vector<AccuracyBar> bars_of(const std::vector<PointErrors>& errors);

/// Standard deviation of a normal distribution over the 80 % quantile of its distances from zero.
inline constexpr double four_of_five = 1.2816;

}  // namespace foretrain
