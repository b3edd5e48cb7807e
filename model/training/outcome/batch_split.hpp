// Division of a step's micro-batches among replicas on nodes of several kinds.
#pragma once

#include <vector>

#include "model/training/step/step.hpp"

namespace foretrain {

struct ReplicaKind {
  int group = 0;  ///< of the cluster's nodes
  int replicas = 0;
  double speed = 1.0;     ///< micro-batches a second, of one replica, up to a factor that all kinds share
  int micro_batches = 0;  ///< of each of its replicas
};

/// Micro-batches for each kind, at least one a replica, `total` over all replicas: as even as can be with what a
/// replica takes for its share, micro_batches ÷ speed (first the longest such time, then the next). Throws UsageError
/// where the numbers of replicas do not allow any division.
void divide_micro_batches(std::vector<ReplicaKind>& kinds, int total);

/// Gives each rank class its micro-batches by the plan's split; `kinds` of the replicas are returned. A step whose
/// nodes are of one kind, or whose split is equal, keeps what it has. Throws UsageError where replicas span nodes of
/// several kinds.
std::vector<ReplicaKind> split_batch(Step& step, const Scenario& scenario, const TrainWorkload& train,
                                     const Topology& topology, BatchSplit split);

}  // namespace foretrain
