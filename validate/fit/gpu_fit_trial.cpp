#include "validate/fit/gpu_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace foretrain {

namespace {

constexpr std::size_t enough_to_judge = 5;
constexpr std::size_t most_folds = 5;

/// A point left out, beside both predictions.
struct Judged {
  std::string group;
  double published = 0.0, fitted = 0.0;  ///< ln(predicted / measured)
};

void judge(const std::vector<Observation>& left_out, const Calibration& published, const Calibration& fitted,
           std::vector<Judged>& judged) {
  for (const Observation& point : left_out) {
    judged.push_back({point.group, std::log(point.predict(published) / point.measured),
                      std::log(point.predict(fitted) / point.measured)});
  }
}

/// Every point left out once, and predicted by a fit to others.
std::vector<Judged> cross_validated(const std::vector<Observation>& points, const std::vector<std::string>& constants,
                                    const Calibration& start, const Calibration& published) {
  const std::size_t folds = std::min(most_folds, points.size());
  std::vector<Judged> judged;
  for (std::size_t fold = 0; folds > 1 && fold < folds; ++fold) {
    std::vector<Observation> others, left_out;
    for (std::size_t i = 0; i < points.size(); ++i) (i % folds == fold ? left_out : others).push_back(points[i]);
    const RobustFit fit = robust_fit(others, constants, start);
    judge(left_out, published, fit.constants.empty() ? published : fit.calibration, judged);
  }
  return judged;
}

bool is_better(const std::vector<Judged>& judged) {
  std::map<std::string, double> size;
  for (const Judged& point : judged) size[point.group] += 1.0;
  const auto weight = [&](const Judged& point) {
    return 1.0 / (size.at(point.group) * static_cast<double>(size.size()));
  };
  const auto gain_of = [](const Judged& point) { return robust_loss(point.published) - robust_loss(point.fitted); };
  double gain = 0.0, variance = 0.0;
  for (const Judged& point : judged) gain += weight(point) * gain_of(point);
  for (const Judged& point : judged) variance += std::pow(weight(point) * (gain_of(point) - gain), 2.0);
  return gain > std::sqrt(variance);
}

double mean_error(const std::vector<Judged>& judged, double Judged::*distance) {
  double sum = 0.0;
  for (const Judged& point : judged) sum += std::abs(std::exp(point.*distance) - 1.0);
  return judged.empty() ? 0.0 : sum / static_cast<double>(judged.size());
}

}  // namespace

StageTrial try_stage(const std::vector<Observation>& points, const std::vector<Observation>& held_out,
                     const std::vector<std::string>& constants, const Calibration& start,
                     const Calibration& published) {
  StageTrial trial{.points = static_cast<int>(points.size()), .fit = robust_fit(points, constants, start)};
  if (trial.fit.constants.empty()) return trial;
  trial.held_out = held_out.size() >= enough_to_judge;
  std::vector<Judged> judged;
  if (trial.held_out) {
    judge(held_out, published, trial.fit.calibration, judged);
  } else {
    judged = cross_validated(points, constants, start, published);
  }
  trial.judged = static_cast<int>(judged.size());
  trial.published = mean_error(judged, &Judged::published);
  trial.fitted = mean_error(judged, &Judged::fitted);
  trial.adopted = !judged.empty() && trial.fitted < trial.published && is_better(judged);
  return trial;
}

std::string verdict(const StageTrial& trial) {
  if (trial.judged == 0) return "no point could be left out to judge the fit by";
  return fmt::format("predicts {} points left out {} ({:.1f} % off, {:.1f} % as published)", trial.judged,
                     trial.adopted ? "better" : "no better", trial.fitted * 100.0, trial.published * 100.0);
}

}  // namespace foretrain
