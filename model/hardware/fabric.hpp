// The fabric behind the NICs, as values: what switches there are and what lies between them. Turned into
// routes by fabric_routes.hpp.
//
// A kind of fabric is a struct of this file and stands in Fabric::shape. Its other functions are in fabric_NAME.cpp:
//   word     what `kind:` calls it
//   routes   its links, and the ways through them, for a cluster that has no problem
//   problem  why it is impossible, or does not suit the cluster; nothing where it does
//
// Its keys are rows of scenario/keys/node_keys.cpp; what no row says of them is in
// scenario/hardware/network_reader.cpp.
//
// Wherever several cables join the same two places they are one link of their bandwidths together: traffic is taken to
// be spread over them ideally, as packet spraying does. Two shapes have ways to choose among (`routing`): where chance
// chooses, `draws` says so, and `routes` takes the number of a draw; without one, routes are what a planner sees.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

struct Cluster;
struct HardwareProblem;
class FabricRoutes;

/// The number of one of the draws that a seed gives.
using RouteDraw = std::optional<int>;
inline constexpr int routes_drawn = 40;

/// Which of a leaf's uplinks a connection takes. perfect: all of them, however many connections there are; adaptive:
/// whichever is free, but one at a time; hash: the one that a hash of its ends names (ECMP: RFC 2992), at each tier.
enum class UplinkRouting { perfect, adaptive, hash };

/// minimal: by the links between the two groups. valiant: by way of another group, drawn for each connection, as which
/// any pattern of traffic is a random one (Valiant and Brebner, STOC 1981; Kim et al., below).
enum class DragonflyRouting { minimal, valiant };

/// Every card on one switch (or a fabric that behaves so): nothing blocks.
struct SingleSwitch {
  static constexpr std::string_view word = "single_switch";

  [[nodiscard]] std::unique_ptr<FabricRoutes> routes(const Cluster& cluster, RouteDraw draw = {}) const;
  [[nodiscard]] std::optional<HardwareProblem> problem(const Cluster& cluster) const;
  bool operator==(const SingleSwitch&) const = default;
};

/// Leaves, spines and, with pods, a core above them: folded Clos. Traffic climbs as far as it must, and no farther.
struct FatTree {
  static constexpr std::string_view word = "fat_tree";
  int nodes_per_leaf = 1;           ///< nodes that have a card on a leaf
  int nodes_per_pod = 0;            ///< 0: no pods, every leaf hangs on the same spines
  double oversubscription = 1.0;    ///< cards below a leaf over its cables upward
  double pod_oversubscription = 1;  ///< cables from a pod's leaves over cables from its spines to the core
  /// Rail-optimised: card i of every node of a group hangs on the group's leaf i. false: all cards of a node hang on
  /// the same leaf.
  bool rails = false;
  int uplinks = 0;  ///< of a leaf, each to a spine of its own; 0: as many as are as wide as a card
  std::optional<UplinkRouting> routing = std::nullopt;  ///< nothing: not stated
  int seed = 1;

  [[nodiscard]] int uplinks_of(const Cluster& cluster) const;
  /// Whether some traffic has uplinks to choose among.
  [[nodiscard]] bool chooses(const Cluster& cluster) const;
  [[nodiscard]] bool draws(const Cluster& cluster) const { return routing == UplinkRouting::hash && chooses(cluster); }
  [[nodiscard]] std::unique_ptr<FabricRoutes> routes(const Cluster& cluster, RouteDraw draw = {}) const;
  [[nodiscard]] std::optional<HardwareProblem> problem(const Cluster& cluster) const;
  bool operator==(const FatTree&) const = default;
};

/// Groups of routers that are all joined to each other; every two groups are joined by global links, evenly spread over
/// their routers (Kim, Dally, Scott and Abts, Technology-driven, highly-scalable dragonfly topology, ISCA 2008).
/// Minimal routing: at most local, global, local.
struct Dragonfly {
  static constexpr std::string_view word = "dragonfly";
  int nodes_per_router = 1;
  int routers_per_group = 1;
  int global_links_per_router = 1;
  int groups = 1;
  BytesPerSecond local_bandwidth;                          ///< between two routers of a group, one direction, line rate
  BytesPerSecond global_bandwidth;                         ///< of one global link
  std::optional<DragonflyRouting> routing = std::nullopt;  ///< nothing: not stated
  int seed = 1;

  /// Whether some traffic has groups to go round by.
  [[nodiscard]] bool chooses(const Cluster& cluster) const;
  [[nodiscard]] bool draws(const Cluster& cluster) const {
    return routing == DragonflyRouting::valiant && chooses(cluster);
  }
  [[nodiscard]] std::unique_ptr<FabricRoutes> routes(const Cluster& cluster, RouteDraw draw = {}) const;
  [[nodiscard]] std::optional<HardwareProblem> problem(const Cluster& cluster) const;
  bool operator==(const Dragonfly&) const = default;
};

/// Every node is a router with a link to each neighbour, two in every dimension; row-major numbering. Routing goes
/// along the dimensions, last one first, the shorter way round; where both ways are equal, nodes take turns.
struct Torus {
  static constexpr std::string_view word = "torus";
  std::vector<int> dimensions;
  BytesPerSecond link_bandwidth;  ///< to one neighbour, one direction, line rate

  [[nodiscard]] std::unique_ptr<FabricRoutes> routes(const Cluster& cluster, RouteDraw draw = {}) const;
  [[nodiscard]] std::optional<HardwareProblem> problem(const Cluster& cluster) const;
  bool operator==(const Torus&) const = default;
};

/// Places far apart, each with one switch. Nodes are divided evenly over them, in order; each place has one line into
/// the wide area, shared by all its traffic with other places.
struct Sites {
  static constexpr std::string_view word = "sites";
  int sites = 2;
  double distance_metres = 0.0;  ///< of cable, between any two
  BytesPerSecond bandwidth;      ///< of a site's line, one direction

  [[nodiscard]] std::unique_ptr<FabricRoutes> routes(const Cluster& cluster, RouteDraw draw = {}) const;
  [[nodiscard]] std::optional<HardwareProblem> problem(const Cluster& cluster) const;
  bool operator==(const Sites&) const = default;
};

struct Fabric {
  std::variant<SingleSwitch, FatTree, Dragonfly, Torus, Sites> shape;
  Seconds switch_latency;  ///< added by every switch on the way, or by every hop of a torus
  bool operator==(const Fabric&) const = default;
};

/// Light in fibre travels at two thirds of its speed in vacuum, 299,792,458 m/s: 5 µs per kilometre. (Refractive index
/// 1.468 of ITU-T G.652 fibre at 1550 nm: 0.681.)
constexpr double fibre_metres_per_second = 299'792'458.0 * 2.0 / 3.0;

}  // namespace foretrain
