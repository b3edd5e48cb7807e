// The fabric behind the network cards, as values: what switches there are and what lies between them. Turned into
// routes by fabric_routes.hpp.
//
// Wherever several cables join the same two places they are one link of their bandwidths together: traffic is taken to
// be spread over them ideally, as packet spraying does. Flows that a hash puts on the same cable fare worse.
#pragma once

#include <variant>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// Every card on one switch (or a fabric that behaves so): nothing blocks.
struct SingleSwitch {};

/// Leaves, spines and, with pods, a core above them: folded Clos. Traffic climbs as far as it must, and no farther.
struct FatTree {
  int nodes_per_leaf = 1;           ///< nodes that have a card on a leaf
  int nodes_per_pod = 0;            ///< 0: no pods, every leaf hangs on the same spines
  double oversubscription = 1.0;    ///< cards below a leaf over its cables upward
  double pod_oversubscription = 1;  ///< cables from a pod's leaves over cables from its spines to the core
  /// Rail-optimised: card i of every node of a group hangs on the group's leaf i. false: all cards of a node hang on
  /// the same leaf.
  bool rails = false;
};

/// Groups of routers that are all joined to each other; every two groups are joined by global links, evenly spread over
/// their routers (Kim, Dally, Scott and Abts, Technology-driven, highly-scalable dragonfly topology, ISCA 2008).
/// Routing is minimal: at most local, global, local.
struct Dragonfly {
  int nodes_per_router = 1;
  int routers_per_group = 1;
  int global_links_per_router = 1;
  int groups = 1;
  BytesPerSecond local_bandwidth;   ///< between two routers of a group, one direction, line rate
  BytesPerSecond global_bandwidth;  ///< of one global link
};

/// Every node is a router with a link to each neighbour, two in every dimension; row-major numbering. Routing goes
/// along the dimensions, last one first, the shorter way round; where both ways are equal, nodes take turns.
struct Torus {
  std::vector<int> dimensions;
  BytesPerSecond link_bandwidth;  ///< to one neighbour, one direction, line rate
};

/// Places far apart, each with one switch. Nodes are divided evenly over them, in order; each place has one line into
/// the wide area, shared by all its traffic with other places.
struct Sites {
  int sites = 2;
  double distance_metres = 0.0;  ///< of cable, between any two
  BytesPerSecond bandwidth;      ///< of a site's line, one direction
};

struct Fabric {
  std::variant<SingleSwitch, FatTree, Dragonfly, Torus, Sites> shape;
  Seconds switch_latency;  ///< added by every switch on the way, or by every hop of a torus
};

/// Light in fibre travels at two thirds of its speed in vacuum, 299,792,458 m/s: 5 µs per kilometre. (Refractive index
/// 1.468 of ITU-T G.652 fibre at 1550 nm: 0.681.)
constexpr double fibre_metres_per_second = 299'792'458.0 * 2.0 / 3.0;

}  // namespace foretrain
