// How far a search for plans is, and how long what is left will take.
#pragma once

#include "model/planning/plan_search.hpp"
#include "reports/cli/options.hpp"

namespace foretrain {

/// Plans are settled by thousands where a bound shows that none of them is best, and one by one where it does not: what
/// is left is told by what refining and settling have taken so far, not by the number of plans.
class SearchProgress {
 public:
  void tell(const PlanSearch& search);
  [[nodiscard]] double elapsed_seconds() const { return progress_.elapsed_seconds(); }

 private:
  Progress outlining_{0, "layouts"}, progress_{0, "plans"};
  std::size_t refined_ = 0, settled_ = 0;   ///< until the round before
  double refining_ = 0.0, settling_ = 0.0;  ///< seconds
  double last_ = 0.0;                       ///< seconds at the end of the round before
};

}  // namespace foretrain
