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

std::unique_ptr<FabricRoutes> make_routes(const SingleSwitch& /*unused*/, const Cluster& cluster) {
  return std::make_unique<SingleSwitchRoutes>(cluster.network.fabric.switch_latency);
}

std::unique_ptr<FabricRoutes> make_fabric_routes(const Cluster& cluster) {
  if (cluster.nodes == 1) return make_routes(SingleSwitch{}, cluster);
  return std::visit([&](const auto& shape) { return make_routes(shape, cluster); }, cluster.network.fabric.shape);
}

}  // namespace foretrain
