#include "model/base/memo.hpp"
#include "model/hardware/topology.hpp"

namespace foretrain {

Topology Topology::of(const Cluster& cluster) {
  static thread_local Memo<Cluster, Topology> memo(16);
  const Topology* known = memo.find(cluster);
  return known != nullptr ? *known : memo.add(cluster, Topology(cluster));
}

}  // namespace foretrain
