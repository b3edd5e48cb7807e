// Tori with dimension-order routing. Node n's link forward in dimension d is n · 2D + 2d, the one backward the next.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/number.hpp"
#include "model/hardware/fabric_routes.hpp"

namespace foretrain {
namespace {

class TorusRoutes final : public FabricRoutes {
 public:
  TorusRoutes(const Torus& torus, const Cluster& cluster) : FabricRoutes(cluster), dimensions_(torus.dimensions) {
    add_links(cluster.nodes * ways(), torus.link_bandwidth * cluster.network.efficiency);
  }

  [[nodiscard]] std::string link_name(LinkId link) const override {
    const int node = link / ways(), way = link % ways();
    return fmt::format("node{}>dimension{}{}", node, way / 2, way % 2 == 0 ? "+" : "-");
  }

  void append(FabricPort from, FabricPort to, std::uint64_t /*connection*/, LinkId first,
              std::vector<LinkId>& links) const override {
    walk(from.node, to.node, [&](int node, int way) { links.push_back(first + node * ways() + way); });
  }

  [[nodiscard]] Seconds delay(FabricPort from, FabricPort to) const override {
    int hops = 0;
    walk(from.node, to.node, [&hops](int, int) { ++hops; });
    return switch_latency_ * number(hops);
  }

 private:
  [[nodiscard]] int ways() const { return 2 * static_cast<int>(dimensions_.size()); }

  /// Calls `hop(node, way)` for every link from one node to another.
  template <typename Hop>
  void walk(int from, int to, const Hop& hop) const {
    int stride = 1;
    for (int d = static_cast<int>(dimensions_.size()) - 1; d >= 0; --d) {
      const int size = dimensions_[at_index(d)];
      const int start = from / stride % size;
      const int forward = (to / stride % size - start + size) % size;
      const bool ahead = 2 * forward < size || (2 * forward == size && start % 2 == 0);
      for (int left = ahead ? forward : size - forward; left > 0 && forward > 0; --left) {
        hop(from, 2 * d + (ahead ? 0 : 1));
        const int at = from / stride % size;
        from += ((at + (ahead ? 1 : size - 1)) % size - at) * stride;
      }
      stride *= size;
    }
  }

  std::vector<int> dimensions_;
};

}  // namespace

std::unique_ptr<FabricRoutes> Torus::routes(const Cluster& cluster, RouteDraw /*none*/) const {
  return std::make_unique<TorusRoutes>(*this, cluster);
}

std::optional<HardwareProblem> Torus::problem(const Cluster& cluster) const {
  std::int64_t nodes = dimensions.empty() ? 0 : 1;
  for (const int size : dimensions) nodes = std::min(nodes * size, most_links);
  if (nodes != cluster.nodes) {
    return of_fabric(
        "dimensions",
        fmt::format("{} = {} nodes, but the cluster has {}", fmt::join(dimensions, " x "), nodes, cluster.nodes),
        fmt::format("sizes whose product is {}", cluster.nodes));
  }
  if (nodes * static_cast<std::int64_t>(dimensions.size()) * 2 > most_links) {
    return of_fabric("dimensions", "more links than can be counted", "fewer dimensions");
  }
  return std::nullopt;
}

}  // namespace foretrain
