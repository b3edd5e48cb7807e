// Errors of predictions, for tests against published rows.
#pragma once

#include <cmath>

#include "model/base/quantity.hpp"

namespace foretrain::test {

/// Mean of the absolute errors, as shares of what was measured.
struct Errors {
  double sum = 0.0;
  int count = 0;

  void add(Seconds predicted, Seconds measured) {
    sum += std::abs(predicted / measured - 1.0);
    ++count;
  }
  [[nodiscard]] double mean() const { return sum / count; }
};

}  // namespace foretrain::test
