// The passes of a pipeline in their order, as a bound sees them: what a stage cannot begin before, however gradients
// are synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/parallelism/plan.hpp"

namespace foretrain {

struct PipelineWalk {
  struct Stage {
    Seconds end;                          ///< of its last pass
    std::vector<Seconds> last_gradients;  ///< by chunk: the beginning of the pass after which its gradients are whole
  };
  std::vector<Stage> stages;
};

/// Each stage's passes in their order.
using PipelineOrders = std::vector<std::vector<PipelinePass>>;

/// What decides the order of a pipeline's passes; a session's key.
struct PipelineShape {
  using Value = const PipelineOrders;
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int stages = 1, interleave = 1, micro_batches = 1;

  bool operator==(const PipelineShape&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(schedule, stages, interleave, micro_batches); }
  [[nodiscard]] std::size_t bytes(const PipelineOrders& orders) const {
    return orders.size() * (sizeof(std::vector<PipelinePass>) + orders.front().size() * sizeof(PipelinePass));
  }
};
/// The orders of all stages; kept for the next time. Null where they are too many passes to be worth a walk.
std::shared_ptr<const PipelineOrders> walked_orders(const PipelineShape& shape);

/// `passes`: what they take at least, by stage, then chunk. `hop`: the message from one stage to the next.
PipelineWalk walk_pipeline(const ChunkPlacement& placement, const PipelineOrders& orders, int micro_batches,
                           const std::vector<std::vector<PerPass<Seconds>>>& passes, Seconds hop);

}  // namespace foretrain
