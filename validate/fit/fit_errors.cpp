#include "validate/fit/fit_errors.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/statistics.hpp"

namespace foretrain {

namespace {

constexpr std::size_t enough_held_out = 5;
constexpr double product_bar = 0.05, kernel_bar = 0.08, step_bar = 0.05;

/// Uses points held out if there are any.
AccuracyBar bar_of(const std::string& name, double limit, const std::vector<std::string>& families,
                   const std::vector<PointErrors>& errors) {
  for (const bool held_out : {true, false}) {
    const PointErrors all = together(errors, [&](const PointErrors& group) {
      return group.held_out >= held_out && std::ranges::find(families, group.family) != families.end();
    });
    if (all.points > 0) return {name, limit, all.points, held_out, all.mape};
  }
  return {name, limit};
}

}  // namespace

std::vector<PointErrors> errors_of(const std::vector<PointPair>& pairs) {
  std::vector<PointErrors> errors;
  for (const PointPair& pair : pairs) {
    auto group = std::ranges::find_if(errors, [&](const PointErrors& e) {
      return e.group == pair.group && e.family == pair.family && e.held_out == pair.held_out;
    });
    if (group == errors.end()) {
      group = errors.insert(errors.end(), {pair.group, pair.family, pair.held_out, 0, 0.0, 0.0, 0.0, ""});
    }
    const double error = pair.predicted / pair.measured - 1.0;
    ++group->points;
    group->mape += std::abs(error);
    group->bias += error;
    if (std::abs(error) <= std::abs(group->worst) && !group->worst_point.empty()) continue;
    group->worst = error;
    group->worst_point = pair.name;
  }
  for (PointErrors& group : errors) {
    group.mape /= group.points;
    group.bias /= group.points;
  }
  return errors;
}

PointErrors together(const std::vector<PointErrors>& errors, const std::function<bool(const PointErrors&)>& wanted) {
  PointErrors all;
  for (const PointErrors& group : errors) {
    if (!wanted(group)) continue;
    all.points += group.points;
    all.mape += group.mape * group.points;
  }
  if (all.points > 0) all.mape /= all.points;
  return all;
}

std::map<std::string, double> spreads_of(const std::vector<PointPair>& pairs) {
  std::map<std::string, std::vector<double>> all, held_out;
  for (const PointPair& pair : pairs) {
    const double distance = std::abs(std::log(pair.predicted / pair.measured));
    all[pair.family].push_back(distance);
    if (pair.held_out) held_out[pair.family].push_back(distance);
  }
  std::map<std::string, double> spread;
  for (const auto& [family, distances] : all) {
    const std::vector<double>& counted = held_out[family].size() >= enough_held_out ? held_out[family] : distances;
    spread[family] = quantile(counted, 0.8) / four_of_five;
  }
  return spread;
}

std::vector<AccuracyBar> bars_of(const std::vector<PointErrors>& errors) {
  return {bar_of("GEMMs", product_bar, {"matmul"}, errors),
          bar_of("other kernels", kernel_bar, {"convolution", "attention", "streaming", "memory_access"}, errors),
          bar_of("copies and task lists", kernel_bar, {"tasks"}, errors),
          bar_of("collectives", kernel_bar, {"collective"}, errors),
          bar_of("training steps", step_bar, {"step"}, errors)};
}

}  // namespace foretrain
