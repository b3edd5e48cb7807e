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

struct Maker {
  const Cluster& cluster;

  std::unique_ptr<FabricRoutes> operator()(const SingleSwitch& /*unused*/) const {
    return std::make_unique<SingleSwitchRoutes>(cluster.network.fabric.switch_latency);
  }
  std::unique_ptr<FabricRoutes> operator()(const FatTree& tree) const { return make_fat_tree(tree, cluster); }
  std::unique_ptr<FabricRoutes> operator()(const Dragonfly& fly) const { return make_dragonfly(fly, cluster); }
  std::unique_ptr<FabricRoutes> operator()(const Torus& torus) const { return make_torus(torus, cluster); }
  std::unique_ptr<FabricRoutes> operator()(const Sites& sites) const { return make_sites(sites, cluster); }
};

}  // namespace

std::unique_ptr<FabricRoutes> make_fabric_routes(const Cluster& cluster) {
  if (cluster.nodes == 1) return Maker{cluster}(SingleSwitch{});
  return std::visit(Maker{cluster}, cluster.network.fabric.shape);
}

}  // namespace foretrain
