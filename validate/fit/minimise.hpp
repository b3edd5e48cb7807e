// Minimisation without derivatives, for a handful of positive constants and functions with kinks.
#pragma once

#include <functional>
#include <vector>

namespace foretrain {

/// One variable: where the search starts and what it may not leave. Steps are relative to the value.
struct SearchVariable {
  double start = 0.0;
  double minimum = 0.0;
  double maximum = 0.0;
};

struct Minimum {
  std::vector<double> at;
  double value = 0.0;
  int evaluations = 0;
};

/// The smallest value that `function` takes near the start, by Nelder and Mead's simplices (NLopt), which are begun
/// anew at the best point until that gains less than one part in 10,000, or `budget` evaluations are spent. Same input,
/// same result.
Minimum minimise(const std::function<double(const std::vector<double>&)>& function,
                 const std::vector<SearchVariable>& variables, int budget);

}  // namespace foretrain
