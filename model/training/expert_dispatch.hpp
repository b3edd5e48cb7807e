// How much of the tokens' copies for several experts has to travel.
#pragma once

#include <vector>

#include "model/hardware/topology.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parallelism/plan.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// Share of a full all-to-all that is sent where each token goes to `copies` experts, which are spread evenly over the
/// ranks of `group`: once to each rank that holds one of them; between nodes once to each such node, from which it is
/// handed on inside, beside what crosses the network (DeepEP, HybridEP).
///
/// Of p places, copies chosen at random meet p · (1 − (1 − 1/p)^copies) different ones.
/// `beside`: ranks of the same node that hold different experts of each of the group.
double dispatched_share(int copies, const std::vector<int>& group, const Topology& topology, int beside = 1);

/// Whether the exchange runs beside another micro-batch's kernels: in interleaved pipelines, whose stages have several
/// micro-batches at hand, of trainers that overlap communication at all, where it crosses the network (Megatron-Core,
/// overlap_moe_expert_parallel_comm, which the recipes of Megatron-Bridge for speed set on H100 and not on racks of
/// NVLink).
bool hides_dispatch(const Plan& plan, const std::vector<int>& group, const Topology& topology);

/// A layer's collective as the ranks of `stage` carry it out: of an exchange of tokens what has to travel, and whether
/// it is hidden.
LayerCollective dispatched(LayerCollective call, const Plan& plan, const RankLayout& layout, int stage,
                           const Topology& topology);

}  // namespace foretrain
