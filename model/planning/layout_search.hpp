// Branch and bound through the plans of one layout (tensor, context, expert, pipeline, data and the order of ranks). It
// decides micro-batch, recomputation and sequence parallelism first, which price layers; then the pipeline schedule,
// ZeRO and offloading, and gradient synchronisation. What is most promising is looked into first, and what cannot be
// among the best is settled by its bound.
#pragma once

#include <cstdint>
#include <vector>

#include "model/planning/plan_space.hpp"

namespace foretrain {

enum class PlanGoal { time, cost, energy, memory };

/// Lower is better. Of a goal that grows with the step's time: what a second of the step costs on these machines.
struct PlanObjective {
  PlanGoal goal = PlanGoal::time;
  double per_second = 1.0;              ///< USD or joules a second; 1 where the goal is time
  Seconds limit = Seconds::infinity();  ///< steps that take longer are out of the question

  /// Memory goes first where it is the goal; of plans that need equally much, the faster one is better.
  [[nodiscard]] double value(Seconds step, Bytes memory) const {
    return goal == PlanGoal::memory ? memory.value() + step.value() : step.value() * per_second;
  }
};

/// A plan, its step over an uncontended network and the GPU with the highest peak's memory.
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

struct PlanCounts {
  std::int64_t plans = 0;       ///< all
  std::int64_t estimated = 0;   ///< by the step's graph
  std::int64_t unfit = 0;       ///< do not fit, as an account of their memory or of a part of it says
  std::int64_t impossible = 0;  ///< cannot be laid out
  std::int64_t exceeded = 0;    ///< took less than their bound said: none, or the bounds are wrong
  PlanCounts& operator+=(const PlanCounts& other);
};

/// An open subproblem: all plans with the point's values of the decided dimensions.
struct LayoutNode {
  /// Decided levels. A sharding is known to fit, except for gradients.
  enum class Level { pass, pipeline, sharding, plan };
  Level level = Level::pass;
  double value = 0.0;  ///< that no plan below is better than
  Seconds bound;
  PlanPoint point;
  Bytes memory = Bytes(0.0);
  /// The most promising last; of equals the one of which more is decided.
  friend bool operator<(const LayoutNode& a, const LayoutNode& b) {
    if (a.value != b.value) return a.value > b.value;
    if (a.level != b.level) return a.level < b.level;
    return a.point > b.point;
  }
};

/// The state of a layout's search.
struct LayoutResult {
  double bound = 0.0;            ///< no plan that fits is better, but for those among `best`
  std::vector<LayoutNode> open;  ///< a heap; nothing once the layout is settled
  PlanCounts counts;
  std::vector<PlanCandidate> best;        ///< at most as many as are kept, the best first
  std::vector<PlanCandidate> infeasible;  ///< promising by their bounds (`value`), but do not fit; the best first
};

/// Depth of a layout's evaluation.
enum class LayoutEffort {
  outline,    ///< its kernels alone
  refine,     ///< until its most promising plan is one that fits, or cannot be among the best
  solve,      ///< every plan that may be among the best is estimated
  enumerate,  ///< every plan that fits is; for tests
};

/// `known`: values of the best plans so far; only plans among the best `kept` of these and of the layout's own are
/// looked for. `before`: what a lesser effort has found, from where it goes on.
LayoutResult search_layout(const PlanSpace& space, const PlanPoint& layout, const PlanObjective& objective,
                           const std::vector<double>& known, std::size_t kept, LayoutEffort effort,
                           const LayoutResult& before = {});

}  // namespace foretrain
