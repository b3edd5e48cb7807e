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
  explicit Neighbours(const ColouredGraph& graph);
  [[nodiscard]] std::span<const ColouredGraph::Vertex> of(std::size_t vertex) const {
    return std::span(neighbour_).subspan(first_[vertex], first_[vertex + 1] - first_[vertex]);
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<ColouredGraph::Vertex> neighbour_;
};

/// The class of each vertex, numbered in the order of their first members. Vertices of different colours never share
/// one. O(e log e) for e edges. Classes are told apart by sums of 64-bit hashes: a million vertices have one chance in
/// 10⁷ that two different classes are taken for one.
std::vector<std::int32_t> coarsest_equitable_partition(const ColouredGraph& graph, const Neighbours& neighbours);

/// As far as the first `vertices` do not fall into more than `classes` classes. The refinement tells vertices apart by
/// what lies one edge further away with every round, and stops before the round that would make more. `complete` says
/// whether it came to its end.
struct LimitedPartition {
  std::vector<std::int32_t> class_of;  ///< numbered as above
  bool complete = true;
};
LimitedPartition limited_partition(const ColouredGraph& graph, const Neighbours& neighbours, std::size_t vertices,
                                   std::size_t classes);

}  // namespace foretrain
