// Which of two is faster: pairs of measured cases that differ in chosen keys alone, and whether predictions put them in
// the measured order. A user who chooses between two ways asks for this, not for the error of either.
#pragma once

#include <string>
#include <vector>

#include "reports/measured/accuracy.hpp"

namespace foretrain {

struct Case;

/// A measured and predicted quantity of a case that may be paired with others of its table.
struct Rival {
  const Case* row = nullptr;
  Comparison comparison;
};

/// Pairs up rivals of one table and one quantity whose keys are all equal but the chosen ones, which must all differ. A
/// chosen key stands for everything below it ("plan.sync": algorithm, placement, …). Of several measurements of one
/// scenario the best counts: whatever held the others up was not the scenario. Pairs whose measurements differ by no
/// more than `measured_apart` are only counted. Throws UsageError for a key that no case sets.
PairReport compare_pairs(const std::vector<Rival>& rivals, const std::vector<std::string>& keys);

}  // namespace foretrain
