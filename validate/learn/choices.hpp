// What errors of predictions come to for who chooses by them.
#pragma once

#include <vector>

#include "validate/learn/learn.hpp"

namespace foretrain {

/// `left` of each run. A choice is among the runs of one decision that fit a GPU even where memory is predicted too low
/// by `memory_spread`, as logarithms; ties with the fastest, within 5 %, go to the one that needs least of it.
LearnedErrors learned_errors(const std::vector<LearnedRun>& runs, const std::vector<RunResidual>& left,
                             double memory_spread);

}  // namespace foretrain
