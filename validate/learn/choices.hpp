// What errors of predictions come to for who chooses by them.
#pragma once

#include <vector>

#include "validate/learn/learn.hpp"

namespace foretrain {

/// One configuration measured again varies by as much: of two measured no further apart neither is the better.
inline constexpr double measured_apart = 0.05;

/// `left` of each run. The choice among the runs of one decision is that of the least time to be expected, where memory
/// is predicted with errors of `memory_spread`, as logarithms, and may not do (expected_slowdown()); ties, within 3 %,
/// go to the run that needs least of it.
LearnedErrors learned_errors(const std::vector<LearnedRun>& runs, const std::vector<RunResidual>& left,
                             double memory_spread);

}  // namespace foretrain
