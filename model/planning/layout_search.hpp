// Branch and bound through the plans of one layout (tensor, context, expert, pipeline, data and the order of ranks):
// first micro-batch, recomputation and sequence parallelism, which say what layers take; then the pipeline's schedule;
// what ZeRO divides and what lies on the host; how gradients are synchronised. What is most promising is looked into
// first, and what cannot be among the best is settled by its bound.
#pragma once

#include <cstdint>
#include <vector>

#include "model/planning/plan_objective.hpp"
#include "model/planning/plan_space.hpp"

namespace foretrain {

/// A plan, its step over an uncontended network and the fullest GPU's memory.
struct PlanCandidate {
  PlanPoint point;
  int space = 0;  ///< of several, that differ in hardware
  double value = 0.0;
  Seconds step;
  Bytes memory, capacity;

  /// Better plans first; equal ones by their points.
  friend bool operator<(const PlanCandidate& a, const PlanCandidate& b) {
    if (a.value != b.value) return a.value < b.value;
    return a.space != b.space ? a.space < b.space : a.point < b.point;
  }
};

/// How plans were settled.
struct PlanCounts {
  std::int64_t plans = 0;       ///< all; a settled layout's are plans_in()
  std::int64_t estimated = 0;   ///< by the step's graph
  std::int64_t unfit = 0;       ///< do not fit, as an account of their memory or of a part of it says
  std::int64_t impossible = 0;  ///< cannot be laid out
  std::int64_t exceeded = 0;    ///< took less than their bound said: none, or the bounds are wrong
  PlanCounts& operator+=(const PlanCounts& other);
};

struct LayoutResult {
  PlanCounts counts;
  std::vector<PlanCandidate> best;    ///< at most as many as are kept, the best first
  std::vector<PlanCandidate> misses;  ///< promising by their bounds (`value`), but do not fit; the best first
};

/// No plan of the layout is better than this, as its kernels alone say.
double layout_bound(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective);
std::int64_t plans_in(const PlanSpace& space, const PlanPoint& layout);

struct LayoutOutline {
  double bound = 0.0;  ///< no plan of the layout that fits is better
  std::vector<PlanCandidate> best, misses;
};
/// A closer bound, as passes with their collectives, their pipeline and the memory they need say; no closer than is
/// enough to see that no plan is among the best `kept` of those `known`. And some plans that are promising: as many as
/// there are `estimates`, or all.
LayoutOutline refine_layout(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                            const std::vector<double>& known, std::size_t kept, std::size_t estimates);

/// Settles all plans of a layout. `known`: values of plans found elsewhere; only plans among the best `kept` of these
/// and of the layout's own are looked for.
LayoutResult settle_layout(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                           const std::vector<double>& known, std::size_t kept);

/// The same without any bound: every plan that fits is estimated. For tests.
LayoutResult enumerate_layout(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                              std::size_t kept);

}  // namespace foretrain
