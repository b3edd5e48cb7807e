// Which runs to measure before a decision: those after which a choice by predictions loses least. Takes the predicted
// time of each run, its change by every unknown, and its cost to measure. Returns runs in order, with the expected
// regret after each.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/studies/plan_confidence.hpp"

namespace foretrain {

/// A run that can be measured, or chosen, or both.
struct PossibleRun {
  UncertainPlan plan;  ///< its value: the step, in any unit that choices share
  bool is_choice = true, is_measurable = true;
  double gpu_hours = 0.0;  ///< that measuring it takes
};

/// Standard deviations of logarithms: of a run's own step beside what all share, of its memory, and of a measured step
/// about the run's mean.
struct RunErrors {
  double own = 0.0, memory = 0.0, noise = 0.0;
};

struct NextRun {
  std::size_t run = 0;
  double regret = 0.0;  ///< to expect once it is measured, and those before it
};

struct NextRuns {
  double regret = 0.0;  ///< to expect as things are: by how much the choice takes longer than the best one
  std::vector<NextRun> runs;
};

/// At most `most` runs that together take no more than `gpu_hours`, the most useful first, each the one after which
/// least regret is left. None that would leave as much as without it. What a measurement teaches of the other runs is
/// the mean of the normal distribution that the draws have, given what was measured (preposterior analysis: Raiffa and
/// Schlaifer, Applied Statistical Decision Theory, 1961). A run is measured to errors.noise.
NextRuns next_runs(const std::vector<PossibleRun>& runs, const RunErrors& errors, std::size_t most, double gpu_hours);

/// A measured step against the run's own mean: what devices and networks of a running training vary by.
inline constexpr double measuring_noise = 0.02;

}  // namespace foretrain
