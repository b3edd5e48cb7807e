// Links and routes as values.
#pragma once

#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/hardware/cluster.hpp"

namespace foretrain {

/// Something that sends or receives: GPU rank r is endpoint r (node-major: rank = first_gpu(node) + local index). The
/// host memory of CPU sockets comes behind, node by node; the server process that adds up what arrives there is
/// server_on(that endpoint).
using EndpointId = int;
using LinkId = int;

struct DirectedLink {
  std::string name;
  LinkKind kind = LinkKind::pcie;
  BytesPerSecond bandwidth;            ///< all parallel links together
  bool in_network_reduction = false;   ///< as in LinkType
  double collective_efficiency = 0.0;  ///< as in LinkType
};

/// A link may stand twice in a route (data staged through host memory is written and read there); it then carries twice
/// the bytes.
struct Route {
  std::vector<LinkId> links;
  Seconds latency;  ///< inside a node: the sum over the links; between nodes: the network's and the fabric's, one way
  BytesPerSecond bandwidth;  ///< of the narrowest link (one listed twice gives half); infinite for an empty route
  BytesPerSecond most_rate = BytesPerSecond::infinity();  ///< of the transport's connections, whatever the links carry
};

}  // namespace foretrain
