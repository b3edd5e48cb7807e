// Share of a GPU that the kernels of a group's collectives occupy: NCCL runs one thread block for each of its channels.
#pragma once

#include <vector>

#include "model/hardware/topology.hpp"

namespace foretrain {

/// Channels of a group's communicator. Inside a node: all of its NVLinks' (24), else the two of one ring over PCIe.
/// Between nodes: one ring for each card that the group's ranks of a node use, doubled. Doubled again where a ring has
/// 25 GB/s or more and the GPU is a Hopper or later, up to 16 in all. Source: NCCL 2.18 to 2.27, src/graph/search.cc
/// (ncclTopoDupChannels) and src/graph/connect.cc (ncclTopoPostset).
double channels_of(const std::vector<int>& group, const Topology& topology);
/// The same over those of a node's NVLinks.
double channel_share(const std::vector<int>& group, const Topology& topology);

}  // namespace foretrain
