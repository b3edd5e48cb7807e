#include "reports/cli/search_progress.hpp"

#include <limits>
#include <utility>

#include "model/base/number.hpp"

namespace foretrain {

void SearchProgress::tell(const PlanSearch& search) {
  const PlanSearch::Work& work = search.work;
  const double now = elapsed_seconds(), taken = now - std::exchange(last_, now);
  if (std::exchange(refined_, work.refined) < work.refined) refining_ += taken;
  if (std::exchange(settled_, work.settled) < work.settled) settling_ += taken;
  if (work.refined == 0) return outlining_.advance_to(work.outlined, search.layouts);
  double left = std::numeric_limits<double>::infinity();
  if (work.left_to_settle) {
    left = settling_ * *work.left_to_settle + number(work.to_refine) * refining_ / number(work.refined);
  }
  progress_.advance_to(static_cast<std::size_t>(search.counts.plans), static_cast<std::size_t>(search.plans), left);
}

}  // namespace foretrain
