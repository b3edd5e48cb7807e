#include "model/parallelism/host_dispatch.hpp"

#include <algorithm>

#include "model/parallelism/layout.hpp"

namespace foretrain {

Seconds dispatch_of_trainer(const Plan& plan, const Cluster& cluster, const TrainWorkload& train) {
  if (plan.pipeline == 1 || plan.tensor == 1 || train.peer_dispatch == Seconds(0.0)) return train.layer_dispatch;
  const std::vector<std::vector<int>> nodes = nodes_of_stages(plan, cluster);
  const bool across = std::ranges::any_of(nodes, [&](const auto& of_stage) { return of_stage != nodes.front(); });
  return train.layer_dispatch + train.peer_dispatch * (across ? plan.tensor - 1.0 : 0.0);
}

}  // namespace foretrain
