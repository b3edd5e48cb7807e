// The coarsest equitable partition of a coloured graph: every vertex of a class has equally many neighbours in each
// class. What depends on a vertex's colour and its neighbours alone is then equal within a class.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace foretrain {

/// Undirected; an edge may stand several times, and counts as often.
struct ColouredGraph {
  using Vertex = std::int32_t;

  std::vector<std::int32_t> colour;  ///< of each vertex: from 0 up
  std::vector<std::pair<Vertex, Vertex>> edges = {};

  Vertex add_vertex(std::int32_t of_colour) {
    colour.push_back(of_colour);
    return static_cast<Vertex>(colour.size() - 1);
  }
};

/// The neighbours of each vertex, in the order of the edges.
class Neighbours {
 public:
  using Vertices = std::span<const ColouredGraph::Vertex>;

  explicit Neighbours(const ColouredGraph& graph);
  /// Of a graph of two sides: so many vertices, then others, of which number i has those from listed[first[i]] to
  /// listed[first[i + 1]] for neighbours. Both lists must outlive this.
  Neighbours(std::size_t vertices, std::span<const std::size_t> first, Vertices listed);
  [[nodiscard]] Vertices of(std::size_t vertex) const {
    const std::size_t own = first_.size() - 1;
    return vertex < own ? at(first_, neighbour_, vertex) : at(at_listed_, listed_, vertex - own);
  }

 private:
  static Vertices at(std::span<const std::size_t> first, Vertices all, std::size_t i) {
    return all.subspan(first[i], first[i + 1] - first[i]);
  }

  std::vector<std::size_t> first_;
  std::vector<ColouredGraph::Vertex> neighbour_;
  std::span<const std::size_t> at_listed_;
  Vertices listed_;
};

/// The class of each vertex, numbered in the order of their first members. Vertices of different colours never share
/// one. O(e log e) for e edges. Classes are distinguished by sums of 64-bit hashes: a million vertices have one chance
/// in 10⁷ that two different classes are taken for one.
std::vector<std::int32_t> coarsest_equitable_partition(const ColouredGraph& graph, const Neighbours& neighbours);

/// As far as the first `vertices`, or so many from another one on, do not fall into more than `classes` classes. The
/// refinement tells vertices apart by what lies one edge further away with every round, and stops before the round that
/// would make more. `complete` says whether it came to its end.
struct LimitedPartition {
  std::vector<std::int32_t> class_of;  ///< numbered as above
  bool complete = true;
};
LimitedPartition limited_partition(const ColouredGraph& graph, const Neighbours& neighbours, std::size_t vertices,
                                   std::size_t classes, std::size_t first = 0);

}  // namespace foretrain
