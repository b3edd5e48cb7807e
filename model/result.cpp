#include "model/result.hpp"

namespace foretrain {

Seconds Result::time() const {
  if (train) return train->step_time;
  if (collective) return collective->time;
  if (op) return op->time;
  if (tasks) return tasks->time;
  return Seconds(0.0);
}

void Result::set_uncertainty(double share) {
  uncertainty_low = time() / (1.0 + share);
  uncertainty_high = time() * (1.0 + share);
}

}  // namespace foretrain
