// Dragonflies. A group's routers have routers · global_links_per_router global ports, in order; the ports are dealt out
// to the other groups in order, equally many to each. Where a pair of groups has several links, flows are spread over
// them by their routers' numbers.
#include <fmt/format.h>

#include "model/base/number.hpp"
#include "model/hardware/fabric_routes.hpp"

namespace foretrain {
namespace {

class DragonflyRoutes final : public FabricRoutes {
 public:
  DragonflyRoutes(const Dragonfly& shape, const Cluster& cluster)
      : shape_(shape), switch_latency_(cluster.network.fabric.switch_latency) {
    const int routers = shape.routers_per_group;
    links_per_pair_ = shape.groups > 1 ? routers * shape.global_links_per_router / (shape.groups - 1) : 0;
    const double efficiency = cluster.network.efficiency;
    add_links(shape.groups * routers * (routers - 1), shape.local_bandwidth * efficiency);
    first_global_ = links();
    add_links(shape.groups * (shape.groups - 1) * links_per_pair_, shape.global_bandwidth * efficiency);
  }

  [[nodiscard]] std::string link_name(LinkId link) const override {
    if (link < first_global_) {
      const int others = shape_.routers_per_group - 1;
      const int from = link / others % shape_.routers_per_group, slot = link % others;
      const int group = link / others / shape_.routers_per_group;
      return fmt::format("router{}.{}>router{}.{}", group, from, group, slot < from ? slot : slot + 1);
    }
    const int global = link - first_global_;
    const int from = global / links_per_pair_ / (shape_.groups - 1);
    const int to = (from + 1 + global / links_per_pair_ % (shape_.groups - 1)) % shape_.groups;
    return fmt::format("group{}>group{}.{}", from, to, global % links_per_pair_);
  }

  void append(FabricPort from, FabricPort to, LinkId first, std::vector<LinkId>& links) const override {
    const Way way = find(from, to);
    if (way.from.group == way.to.group) {
      append_local(way.from, way.to.router, first, links);
      return;
    }
    append_local(way.from, way.exit, first, links);
    links.push_back(first + first_global_ +
                    (way.from.group * (shape_.groups - 1) + slot(way.from.group, way.to.group)) * links_per_pair_ +
                    way.lane);
    append_local({way.to.group, way.entry}, way.to.router, first, links);
  }

  [[nodiscard]] Seconds delay(FabricPort from, FabricPort to) const override {
    const Way way = find(from, to);
    int routers = 1;
    if (way.from.group == way.to.group) {
      routers += way.from.router != way.to.router ? 1 : 0;
    } else {
      routers += 1 + (way.from.router != way.exit ? 1 : 0) + (way.entry != way.to.router ? 1 : 0);
    }
    return switch_latency_ * number(routers);
  }

 private:
  struct Router {
    int group = 0;
    int router = 0;  ///< in its group
  };
  struct Way {
    Router from, to;
    int lane = 0;   ///< which of the links between the groups
    int exit = 0;   ///< router of the first group on which it begins
    int entry = 0;  ///< router of the other group on which it ends
  };

  [[nodiscard]] Router router_of(int node) const {
    const int router = node / shape_.nodes_per_router;
    return {router / shape_.routers_per_group, router % shape_.routers_per_group};
  }
  /// The place of another group in a group's order of peers.
  [[nodiscard]] int slot(int group, int other) const { return (other - group - 1 + shape_.groups) % shape_.groups; }

  [[nodiscard]] Way find(FabricPort from, FabricPort to) const {
    Way way{router_of(from.node), router_of(to.node)};
    if (way.from.group == way.to.group) return way;
    way.lane = (way.from.router + way.to.router) % links_per_pair_;
    const auto holder = [&](int group, int other) {
      return (slot(group, other) * links_per_pair_ + way.lane) / shape_.global_links_per_router;
    };
    way.exit = holder(way.from.group, way.to.group);
    way.entry = holder(way.to.group, way.from.group);
    return way;
  }

  void append_local(Router from, int to, LinkId first, std::vector<LinkId>& links) const {
    if (from.router == to) return;
    const int others = shape_.routers_per_group - 1;
    links.push_back(first + (from.group * shape_.routers_per_group + from.router) * others +
                    (to < from.router ? to : to - 1));
  }

  Dragonfly shape_;
  Seconds switch_latency_;
  int links_per_pair_ = 0;
  int first_global_ = 0;
};

}  // namespace

std::unique_ptr<FabricRoutes> Dragonfly::routes(const Cluster& cluster) const {
  return std::make_unique<DragonflyRoutes>(*this, cluster);
}

std::optional<HardwareProblem> Dragonfly::problem(const Cluster& cluster) const {
  const std::int64_t places = std::int64_t{groups} * routers_per_group * nodes_per_router;
  if (places < cluster.nodes) {
    return of_fabric("groups",
                     fmt::format("{} groups of {} routers with {} nodes each have room for {} nodes, not for {}",
                                 groups, routers_per_group, nodes_per_router, places, cluster.nodes),
                     "more groups, routers_per_group or nodes_per_router");
  }
  const std::int64_t ports = std::int64_t{routers_per_group} * global_links_per_router;
  if (ports < groups - 1) {
    return of_fabric("global_links_per_router",
                     fmt::format("a group's {} global links do not reach {} other groups", ports, groups - 1),
                     fmt::format("at most {} groups, or more global links", ports + 1));
  }
  if (std::int64_t{groups} * (std::int64_t{routers_per_group} * routers_per_group + ports) > most_links) {
    return of_fabric("groups", "more links than can be counted", "a smaller dragonfly");
  }
  if (!carries(local_bandwidth)) return of_fabric("local_bandwidth", "no bandwidth", "for example 200 Gbit/s");
  if (!carries(global_bandwidth)) return of_fabric("global_bandwidth", "no bandwidth", "for example 200 Gbit/s");
  return std::nullopt;
}

}  // namespace foretrain
