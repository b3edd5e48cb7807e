// Dragonflies. A group's routers have routers · global_links_per_router global ports, in order; the ports are dealt out
// to the other groups in order, equally many to each. Where a pair of groups has several links, flows are spread over
// them by their routers' numbers. With a draw of Valiant's routing a connection between groups goes by way of a third
// one, and over any of the links to and from it.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/hardware/fabric_routes.hpp"

namespace foretrain {
namespace {

class DragonflyRoutes final : public FabricRoutes {
 public:
  DragonflyRoutes(const Dragonfly& shape, const Cluster& cluster, RouteDraw draw)
      : FabricRoutes(cluster), shape_(shape), goes_round_(shape.draws(cluster)), draw_(draw && goes_round_) {
    if (draw_) {
      salt_ = summable_hash(static_cast<std::uint64_t>(shape.seed) * routes_drawn + static_cast<std::uint64_t>(*draw));
    }
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

  void append(FabricPort from, FabricPort to, std::uint64_t connection, LinkId first,
              std::vector<LinkId>& links) const override {
    const Router source = router_of(from.node), target = router_of(to.node);
    if (source.group == target.group) return append_local(source, target.router, first, links);
    if (!draw_) {
      const Leg leg = leg_of(source, target.group, source.router + target.router);
      append_leg(source, target.group, leg, first, links);
      return append_local({target.group, leg.entry}, target.router, first, links);
    }
    std::uint64_t state = connection ^ salt_;
    const Router middle{other_group(split_mix(state), source.group, target.group), 0};
    const Leg out = leg_of(source, middle.group, any_lane(state));
    append_leg(source, middle.group, out, first, links);
    const Router turning{middle.group, out.entry};
    const Leg in = leg_of(turning, target.group, any_lane(state));
    append_leg(turning, target.group, in, first, links);
    append_local({target.group, in.entry}, target.router, first, links);
  }

  /// The minimal way's delay; Valiant's has two routers more, those of the group between.
  [[nodiscard]] Seconds delay(FabricPort from, FabricPort to) const override {
    const Router source = router_of(from.node), target = router_of(to.node);
    int routers = 1;
    if (source.group == target.group) {
      routers += source.router != target.router ? 1 : 0;
    } else {
      const Leg leg = leg_of(source, target.group, source.router + target.router);
      routers += 1 + (source.router != leg.exit ? 1 : 0) + (leg.entry != target.router ? 1 : 0) + (goes_round_ ? 2 : 0);
    }
    return switch_latency_ * number(routers);
  }

 private:
  struct Router {
    int group = 0;
    int router = 0;  ///< in its group
  };
  /// A way from one group to another.
  struct Leg {
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

  [[nodiscard]] Leg leg_of(Router from, int group, int turn) const {
    const int lane = turn % links_per_pair_;
    const auto holder = [&](int here, int other) {
      return (slot(here, other) * links_per_pair_ + lane) / shape_.global_links_per_router;
    };
    return {lane, holder(from.group, group), holder(group, from.group)};
  }
  [[nodiscard]] int any_lane(std::uint64_t& state) const {
    return static_cast<int>(split_mix(state) % static_cast<std::uint64_t>(links_per_pair_));
  }
  /// One of the groups but two.
  [[nodiscard]] int other_group(std::uint64_t hash, int first, int second) const {
    int group = static_cast<int>(hash % static_cast<std::uint64_t>(shape_.groups - 2));
    for (const int skipped : {std::min(first, second), std::max(first, second)}) group += group >= skipped ? 1 : 0;
    return group;
  }

  /// To the router at the other end.
  void append_leg(Router from, int group, const Leg& leg, LinkId first, std::vector<LinkId>& links) const {
    append_local(from, leg.exit, first, links);
    const int pair = from.group * (shape_.groups - 1) + slot(from.group, group);
    links.push_back(first + first_global_ + pair * links_per_pair_ + leg.lane);
  }
  void append_local(Router from, int to, LinkId first, std::vector<LinkId>& links) const {
    if (from.router == to) return;
    const int others = shape_.routers_per_group - 1;
    links.push_back(first + (from.group * shape_.routers_per_group + from.router) * others +
                    (to < from.router ? to : to - 1));
  }

  Dragonfly shape_;
  bool goes_round_;  ///< by another group
  bool draw_;        ///< and by which is drawn; else ways are minimal
  std::uint64_t salt_ = 0;
  int links_per_pair_ = 0;
  int first_global_ = 0;
};

}  // namespace

bool Dragonfly::chooses(const Cluster& cluster) const {
  return groups > 2 && cluster.nodes > nodes_per_router * routers_per_group;
}

std::unique_ptr<FabricRoutes> Dragonfly::routes(const Cluster& cluster, RouteDraw draw) const {
  return std::make_unique<DragonflyRoutes>(*this, cluster, draw);
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
  return std::nullopt;
}

}  // namespace foretrain
