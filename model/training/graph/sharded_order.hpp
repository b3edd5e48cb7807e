// The order in which a rank gathers, computes and scatters sharded layers (ZeRO-3, FSDP) for one micro-batch.
#pragma once

#include <vector>

#include "model/training/step/step.hpp"

namespace foretrain {

/// Computes run in order on the compute stream; gathers and scatters on one communication stream, and what ranks of the
/// same shard reduce after these on another. A layer's weights are gathered while its predecessor computes, at most two
/// layers ahead (PyTorch FSDP with limit_all_gathers, one prefetch). Without `overlap` one comes after the other, as on
/// processors, which have no streams.
std::vector<ShardedUnit::Pass> sharded_order(const std::vector<ShardedUnit>& units, bool backward, bool overlap);

}  // namespace foretrain
