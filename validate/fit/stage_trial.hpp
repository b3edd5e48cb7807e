// Whether what a stage fitted predicts points that its fit did not see better than what is published does.
#pragma once

#include <string>
#include <vector>

#include "validate/fit/robust_fit.hpp"

namespace foretrain {

/// Outcome of a stage: its constants are kept if they predict points left out better.
struct StageTrial {
  std::string name = {};
  int points = 0;  ///< that were fitted
  RobustFit fit;   ///< of all points that are not held out
  bool adopted = false;
  int judged = 0;                        ///< points that were left out of a fit and predicted
  bool held_out = false;                 ///< those that their suite held out; else every fifth of the others in turn
  double published = 0.0, fitted = 0.0;  ///< their mean absolute error, as published and as fitted
};

/// Fits `constants` to `points`, from `start`. The fit is adopted where the points left out lose less by it than by
/// `published`, by more than the standard error of that gain: L = Σ w (l(published) − l(fitted)) > sqrt(Σ (w (g −
/// L))²), where g is one point's gain, l its robust_loss(), and w gives each group the same weight, as the fit does.
/// If at least five points are held out these are judged; else the points are left out by fifths, each predicted by
/// a fit to the other four (cross-validation; Stone, J. R. Stat. Soc. B 36, 1974). One point alone cannot be judged.
StageTrial try_stage(const std::vector<Observation>& points, const std::vector<Observation>& held_out,
                     const std::vector<std::string>& constants, const Calibration& start, const Calibration& published);

/// "predicts 8 points left out no better (21.0 % off, 18.3 % as published)", or the same of one that was adopted.
std::string verdict(const StageTrial& trial);

}  // namespace foretrain
