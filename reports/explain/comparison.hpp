// Predictions side by side, and where they differ.
#pragma once

#include <string>
#include <vector>

#include "model/result.hpp"

namespace foretrain {

/// Speed-up of `result` over `reference`: samples per second where both train, else time.
struct Speedup {
  double factor = 1.0;
  /// The 90 % interval, should the errors of both predictions be independent.
  double low = 1.0, high = 1.0;
};
Speedup speedup_of(const Result& result, const Result& reference);

/// Several predictions (two or more) as a table, one column each, then each but the first against the first. Ends in a
/// line end.
std::string comparison_text(const std::vector<Result>& results);
/// {"results": [...], "speedups": [{factor, low, high}, ...] of all but the first}
std::string comparison_json(const std::vector<Result>& results);

}  // namespace foretrain
