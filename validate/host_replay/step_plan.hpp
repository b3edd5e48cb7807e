// A training step as what each process of a replay does: the step's task graph, rank by rank.
#pragma once

#include <cstdint>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "validate/host_replay/worker_task.hpp"

namespace foretrain {

struct StepPlan {
  int ranks = 0;
  std::int64_t elements = 0;                 ///< of all gradients, as fp32 values
  std::vector<std::vector<StepTask>> tasks;  ///< by rank
};

/// Of data parallel training, whose gradients are exchanged by a schedule bucket by bucket, beside the backward pass or
/// after it; or by synchronous servers after it. Throws ScenarioError at the key that cannot be replayed.
StepPlan plan_step(const Scenario& scenario);

}  // namespace foretrain
