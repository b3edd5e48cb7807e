// The wiring of one node as a Boost.Graph, and the paths through it.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <compare>
#include <optional>
#include <vector>

#include "model/hardware/route.hpp"

namespace foretrain {

/// One direction of a wire between two vertices.
struct Wire {
  LinkId link = -1;  ///< -1: a wire that is never the limit and counts as no link (a card's slot that is not described)
  BytesPerSecond bandwidth;
  Seconds latency;
  bool nvlink = false;
};

/// Length of a path: fewer hops win; among equals the path whose narrowest wire is wider.
struct PathCost {
  int hops = 0;
  BytesPerSecond narrowest = BytesPerSecond::infinity();

  friend std::partial_ordering operator<=>(const PathCost& a, const PathCost& b) {
    if (a.hops != b.hops) return a.hops <=> b.hops;
    return b.narrowest <=> a.narrowest;
  }
  friend bool operator==(const PathCost&, const PathCost&) = default;
};

struct Path {
  std::vector<int> vertices;  ///< from source to destination, both included
  std::vector<LinkId> links;
  Seconds latency;
  PathCost cost;
};

/// GPUs and NICs begin and end paths but let no traffic through; CPUs and switches do.
class WiringGraph {
 public:
  /// The node's vertices, without wires.
  explicit WiringGraph(const Node& node);

  int add_vertex(bool transit);
  void add_wire(int from, int to, const Wire& wire);
  [[nodiscard]] int vertices() const { return static_cast<int>(transit_.size()); }

  enum class Through { anything, nvlink_only };
  /// Best paths from one vertex to all others (Dijkstra); nothing where there is no path.
  [[nodiscard]] std::vector<std::optional<Path>> paths_from(int source, Through through) const;

 private:
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Wire>;
  struct Passable;

  Graph graph_;
  std::vector<bool> transit_;
};

}  // namespace foretrain
