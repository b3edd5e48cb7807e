#include "model/collectives/automatic.hpp"
namespace foretrain {
LoweredCollective lower_automatic(const CollectiveCall& call, const Topology& topology, const Calibration& c) {
  CollectiveCall ring = call;
  ring.algorithm = SyncAlgorithm::ring;
  return lower(ring, topology, c);
}
}  // namespace foretrain
