// Cost of prediction errors for a choice between plans.
#pragma once

#include <vector>

#include "validate/learn/learn.hpp"

namespace foretrain {

/// One configuration measured again varies by as much: of two measured no further apart neither is the better.
inline constexpr double measured_apart = 0.05;

/// `left` of each run. The choice among the runs of one decision is that of the least time to be expected, where memory
/// is predicted with errors of `memory_spread`, as logarithms, and may not do (expected_slowdown()). Ties, within 3 %,
/// go to the run that needs least of it.
LearnedErrors learned_errors(const std::vector<LearnedRun>& runs, const std::vector<RunResidual>& left,
                             double memory_spread);

/// Whether `errors` are less than `others`, one by one, by more than the standard error of the mean difference (the
/// one-standard-error rule: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984,
/// section 3.4.3).
bool clearly_less(const std::vector<double>& errors, const std::vector<double>& others);

/// Within what the next of these will lie nine times of ten. It is as likely to be the farthest as any of them, so the
/// smallest that no more than a tenth of n + 1 exceed (Vovk, Gammerman and Shafer, Algorithmic Learning in a Random
/// World, 2005, section 2.2.3). The quantile of the n themselves holds 84 of 100 where n is 30.
double nine_of_ten(std::vector<double> distances);

}  // namespace foretrain
