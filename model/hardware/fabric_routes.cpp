#include "model/hardware/fabric_routes.hpp"

namespace foretrain {
namespace {

class SingleSwitchRoutes final : public FabricRoutes {
 public:
  explicit SingleSwitchRoutes(Seconds switch_latency) : switch_latency_(switch_latency) {}
  [[nodiscard]] std::string link_name(LinkId /*link*/) const override { return {}; }
  void append(FabricPort /*from*/, FabricPort /*to*/, LinkId /*first*/, std::vector<LinkId>& /*links*/) const override {
  }
  [[nodiscard]] Seconds delay(FabricPort /*from*/, FabricPort /*to*/) const override { return switch_latency_; }

 private:
  Seconds switch_latency_;
};

}  // namespace

std::unique_ptr<FabricRoutes> SingleSwitch::routes(const Cluster& cluster) const {
  return std::make_unique<SingleSwitchRoutes>(cluster.network.fabric.switch_latency);
}

std::optional<HardwareProblem> SingleSwitch::problem(const Cluster& /*any*/) const { return std::nullopt; }

std::unique_ptr<FabricRoutes> make_fabric_routes(const Cluster& cluster) {
  if (cluster.nodes == 1) return SingleSwitch{}.routes(cluster);
  return std::visit([&](const auto& shape) { return shape.routes(cluster); }, cluster.network.fabric.shape);
}

}  // namespace foretrain
