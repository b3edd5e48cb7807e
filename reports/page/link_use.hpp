// How busy a scenario's links are: the bytes of all its transfers over what each link could have carried meanwhile.
#pragma once

#include <string>
#include <vector>

#include "model/graph/execution.hpp"
#include "model/hardware/topology.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// The links of one name on all nodes; those of a fabric whose names differ in numbers alone.
struct LinkUse {
  std::string name;                ///< "gpu0>nvswitch"
  std::string from = {}, to = {};  ///< empty where the name has no two ends
  LinkKind kind = LinkKind::pcie;
  BytesPerSecond bandwidth;  ///< of the first of them
  int links = 0;
  Bytes busiest = {};  ///< what the busiest of them carries
  double mean = 0.0;   ///< share of the time in which a link is busy, of all of them
  double most = 0.0;   ///< of the busiest
};

struct LinkUses {
  std::vector<NodeVertex> vertices;  ///< of a node
  std::vector<LinkUse> links;        ///< in the order of a node's links, the fabric's behind them
  int nodes = 1;
  Seconds time;  ///< that the transfers are held against
};

/// Collectives inside layers are counted, too, where the graph has them as a part of its passes; what of these is
/// hidden behind kernels is not.
LinkUses link_uses(const Scenario& scenario, Fidelity fidelity);

}  // namespace foretrain
