// Learns a stack from its runs: the setting of greatest posterior probability, how sure each of its numbers is, and how
// well runs left out are predicted. In: measured runs and what a setting predicts of them; out: a LearnedStack.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "validate/learn/parameters.hpp"

namespace foretrain {

/// ln(predicted / measured) of a run's step time and memory, where they are measured.
struct RunResidual {
  std::optional<double> time, memory;
};

/// What run i leaves under settings[i].
using PredictRuns = std::function<std::vector<RunResidual>(const std::vector<StackSetting>& settings)>;

struct LearnedParameter {
  StackParameter parameter;
  double position = 0.0;
  double spread = 0.0;  ///< standard deviation of the position after all runs
  int runs = 0;         ///< whose step or memory a change by the spread before any run would move by more than 3 %
  /// The runs narrow what was assumed by a fifth at least; else it stays as assumed.
  bool determined = false;
};

/// Mean and median of |predicted / measured − 1| of steps; of memory where it was measured.
struct LearnedErrors {
  double mean = 0.0, median = 0.0;
  std::optional<double> memory = std::nullopt;
};

struct LearnedStack {
  std::vector<LearnedParameter> parameters;
  LearnedErrors assumed;                 ///< with nothing learned
  LearnedErrors fitted;                  ///< of the runs that it was learned from
  LearnedErrors left_out;                ///< each fifth predicted from the others
  std::optional<LearnedErrors> scaled;   ///< each number of nodes predicted from the others
  double spread = 0.0;                   ///< nine of ten steps left out lie within this: |ln(predicted / measured)|
  std::vector<std::size_t> unexplained;  ///< runs whose step stays far off under any setting
};

/// Maximum a posteriori by Gauss-Newton steps, log-times spread as Cauchy's distribution with the runs' own scale: a
/// run that paused says nothing, however long (Holland and Welsch 1977); the posterior's spread by Laplace's
/// approximation. `nodes` of each run. Runs left out are predicted by settings found on the others, from derivatives at
/// the whole's setting: one prediction a run. Throws UsageError where no run measures a time.
LearnedStack learn_stack(const std::vector<StackParameter>& parameters, const std::vector<int>& nodes,
                         const PredictRuns& predict);

}  // namespace foretrain
