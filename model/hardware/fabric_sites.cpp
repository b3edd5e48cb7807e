// Sites far apart: out over one's own line, in over the other's, and as long as light needs.
#include <fmt/format.h>

#include <cstdint>

#include "model/hardware/fabric_routes.hpp"

namespace foretrain {
namespace {

class SiteRoutes final : public FabricRoutes {
 public:
  SiteRoutes(const Sites& sites, const Cluster& cluster)
      : FabricRoutes(cluster),
        sites_(sites.sites),
        nodes_(cluster.nodes),
        propagation_(sites.distance_metres / fibre_metres_per_second) {
    add_links(2 * sites_, sites.bandwidth * cluster.network.efficiency);
  }

  [[nodiscard]] std::string link_name(LinkId link) const override {
    return link % 2 == 0 ? fmt::format("site{}>line", link / 2) : fmt::format("line>site{}", link / 2);
  }

  void append(FabricPort from, FabricPort to, std::uint64_t /*connection*/, LinkId first,
              std::vector<LinkId>& links) const override {
    if (site(from.node) == site(to.node)) return;
    links.push_back(first + 2 * site(from.node));
    links.push_back(first + 2 * site(to.node) + 1);
  }

  [[nodiscard]] Seconds delay(FabricPort from, FabricPort to) const override {
    return site(from.node) == site(to.node) ? switch_latency_ : switch_latency_ * 2.0 + propagation_;
  }

 private:
  [[nodiscard]] int site(int node) const { return static_cast<int>(std::int64_t{node} * sites_ / nodes_); }

  int sites_, nodes_;
  Seconds propagation_;
};

}  // namespace

std::unique_ptr<FabricRoutes> Sites::routes(const Cluster& cluster, RouteDraw /*none*/) const {
  return std::make_unique<SiteRoutes>(*this, cluster);
}

std::optional<HardwareProblem> Sites::problem(const Cluster& cluster) const {
  if (sites > cluster.nodes) {
    return of_fabric("sites", fmt::format("{} sites for {} nodes", sites, cluster.nodes),
                     fmt::format("at most {}", cluster.nodes));
  }
  return std::nullopt;
}

}  // namespace foretrain
