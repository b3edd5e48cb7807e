// The passes of a pipeline in their order, as a bound sees them: what a stage cannot begin before, however gradients
// are synchronised.
#pragma once

#include <memory>
#include <vector>

#include "model/parallelism/pipeline_order.hpp"
#include "model/parallelism/plan.hpp"

namespace foretrain {

/// What a stage's passes of one of its chunks take at least.
struct ChunkPasses {
  Seconds forward, backward;
  Seconds inputs, weights;  ///< the two parts of a backward pass
  Seconds paired;           ///< a forward pass with the whole backward pass of the stage's other chunk
};

struct PipelineWalk {
  struct Stage {
    Seconds end;                          ///< of its last pass
    std::vector<Seconds> last_gradients;  ///< by chunk: the beginning of the pass after which its gradients are whole
  };
  std::vector<Stage> stages;
};

/// Each stage's passes in their order.
using PipelineOrders = std::vector<std::vector<PipelinePass>>;

/// The orders of all stages; kept for the next time. Null where they are too many passes to be worth a walk.
std::shared_ptr<const PipelineOrders> walked_orders(const Plan& plan, int micro_batches);

/// `passes`: by stage, then chunk. `hop`: the message from one stage to the next.
PipelineWalk walk_pipeline(const ChunkPlacement& placement, const PipelineOrders& orders, int micro_batches,
                           const std::vector<std::vector<ChunkPasses>>& passes, Seconds hop);

}  // namespace foretrain
