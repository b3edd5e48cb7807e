// Learns a stack from its runs: the setting of greatest posterior probability, the uncertainty of each number, and how
// well runs left out are predicted. In: measured runs and what a setting predicts of them; out: a LearnedStack.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "validate/learn/parameters.hpp"

namespace foretrain {

/// ln(predicted / measured) of a run's step time and memory, where they are measured; which share of a GPU's memory is
/// predicted to be full.
struct RunResidual {
  std::optional<double> time, memory;
  double filled = 0.0;
};

struct RunAt {
  std::size_t run = 0;
  StackSetting setting;
};
/// Residuals of these runs.
using PredictRuns = std::function<std::vector<RunResidual>(const std::vector<RunAt>& asked)>;

/// Properties of a run beside its prediction.
struct LearnedRun {
  int nodes = 1;
  bool pipelined = false;  ///< several stages
  int decision = -1;       ///< runs of the same number differ in what a plan chooses; -1: none does
  double time = 0.0;       ///< measured, in a unit that the runs of a decision share
};

struct LearnedParameter {
  StackParameter parameter;
  double position = 0.0;
  double spread = 0.0;  ///< standard deviation of the position after all runs
  int runs = 0;         ///< with a step or memory that one prior deviation would move by more than 3 %
  /// The runs narrow what was assumed by a fifth at least; else it stays as assumed.
  bool determined = false;
};

/// Mean and median of |predicted / measured − 1| of steps; of memory where it was measured. Of runs that are choices
/// for one decision: the share of pairs measured more than 5 % apart that is ranked as measured, and the mean excess of
/// the predicted best over the measured best.
struct LearnedErrors {
  double mean = 0.0, median = 0.0;
  std::optional<double> memory = std::nullopt, pairs = std::nullopt, regret = std::nullopt;
};

/// Residuals of a run with nothing learned, under the stack, and predicted from the other fifths.
struct LearnedCase {
  std::size_t run = 0;
  RunResidual assumed, fitted, left_out;
};

struct LearnedStack {
  std::vector<LearnedParameter> parameters;
  std::vector<LearnedCase> cases;        ///< every run of which something is measured
  LearnedErrors assumed;                 ///< with nothing learned
  LearnedErrors fitted;                  ///< of the runs that it was learned from
  LearnedErrors left_out;                ///< each fifth predicted from the others
  std::optional<LearnedErrors> scaled;   ///< each number of nodes predicted from the others
  double spread = 0.0;                   ///< nine of ten steps left out lie within this: |ln(predicted / measured)|
  double memory_shortfall = 0.0;         ///< nine of ten runs left out: ln(measured / predicted) of memory, 0 at least
  std::vector<std::size_t> unexplained;  ///< runs whose step stays far off under any setting
};

/// Maximum a posteriori by Gauss-Newton steps, log-times spread as Cauchy's distribution with the runs' own scale: a
/// run that paused says nothing, however long (Holland and Welsch 1977). The posterior's spread by Laplace's
/// approximation. Runs left out are predicted by settings found on the others, from derivatives at the whole's setting:
/// one prediction a run. Throws UsageError where no run measures a time.
LearnedStack learn_stack(const std::vector<StackParameter>& parameters, const std::vector<LearnedRun>& runs,
                         const PredictRuns& predict);

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
