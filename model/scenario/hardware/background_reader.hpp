// The top-level key `background`: traffic of others, beside which the scenario's own transfers run.
#pragma once

#include <vector>

#include "model/scenario/scenario.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// A list of { from, to, rate }, e.g. { from: node0, to: node3, rate: 20 Gbit/s }. Places:
///   gpu<r>            the memory of the GPU with global rank r (counted node by node)
///   node<n>           host memory of node n, that of its first socket; node<n>/cpu<s>: of socket s
///   host of gpu<r>    host memory of the socket that is nearest to a GPU
/// Without `rate` a flow takes its fair share. Throws ScenarioError for places that the cluster does not have.
std::vector<BackgroundFlow> read_background(const Field& field, const Cluster& cluster);

}  // namespace foretrain
