#include "model/hardware/fabric_routes.hpp"

#include <algorithm>

namespace foretrain {
std::unique_ptr<FabricRoutes> SingleSwitch::routes(const Cluster& cluster, RouteDraw /*none*/) const {
  return std::make_unique<FabricRoutes>(cluster);
}

std::optional<HardwareProblem> SingleSwitch::problem(const Cluster& /*any*/) const { return std::nullopt; }

void FabricRoutes::apply(const std::vector<Fault>& faults, double efficiency) {
  const std::vector<BytesPerSecond> whole = bandwidths_;
  for (Fault fault : faults) {
    if (fault.node >= 0) continue;
    fault.bandwidth *= efficiency;  // stated as a line rate
    for (LinkId link = 0; link < links(); ++link) {
      const double share = share_of(fault, link);
      if (share <= 0.0) continue;
      BytesPerSecond& left = bandwidths_[at_index(link)];
      if (share >= 1.0) {
        left = fault.left_of(left * share) / share;
      } else {
        const BytesPerSecond cable = whole[at_index(link)] * share;
        left = std::max(left - (cable - fault.left_of(cable)), BytesPerSecond(0.0));
      }
    }
  }
  note_failed();
}

std::unique_ptr<FabricRoutes> make_fabric_routes(const Cluster& cluster, RouteDraw draw) {
  if (cluster.nodes == 1) return SingleSwitch{}.routes(cluster);
  return std::visit([&](const auto& shape) { return shape.routes(cluster, draw); }, cluster.network.fabric.shape);
}

bool draws_routes(const Cluster& cluster) {
  if (cluster.nodes == 1) return false;
  const auto draws = [&](const auto& shape) {
    if constexpr (requires { shape.draws(cluster); }) return shape.draws(cluster);
    return false;
  };
  return std::visit(draws, cluster.network.fabric.shape);
}

}  // namespace foretrain
