// Repeating a measurement until it is known well enough, or its time is up.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// When to stop repeating.
struct StoppingRule {
  int warm_up = 1;       ///< repetitions that do not count
  int least = 5;         ///< repetitions that are always made
  int most = 500;        ///< and never more than these
  double target = 0.01;  ///< half the width of the median's 95 % confidence interval over the median: good enough
  Seconds budget{1.0};   ///< repetitions of any kind stop after this, once `least` are made
};

/// The note of a kernel's time that may be its launch's: no fit may see it.
inline constexpr const char* host_bound_note = "launched more slowly than it runs: the time may be the host's";

/// Values of repetitions, in any unit.
struct Sampled {
  std::vector<double> values;  ///< in order
  std::string note = {};       ///< remarks on them

  [[nodiscard]] double median() const;
  [[nodiscard]] double lowest() const;
  /// Distance of the quartiles over the median; 0 where that is 0.
  [[nodiscard]] double spread() const;
};

/// Half the width of the 95 % confidence interval of the median, over the median: from the values of ranks
/// n/2 ± 0.98·√n, which hold whatever the distribution (Conover, "Practical Nonparametric Statistics", 3.2). Infinite
/// for fewer than six values, which have no such interval.
double median_uncertainty(std::vector<double> values);

/// Calls `once`, which returns what it measured, as the rule says. Throws Interrupted when the user ends the work.
Sampled sample(const std::function<double()>& once, const StoppingRule& rule);

}  // namespace foretrain
