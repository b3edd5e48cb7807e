// What makes one plan better than another.
#pragma once

#include <string_view>

#include "model/base/quantity.hpp"
#include "model/base/words.hpp"

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

}  // namespace foretrain
