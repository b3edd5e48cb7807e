#include "model/hardware/wiring_graph.hpp"

#include <algorithm>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <limits>
#include <utility>

#include "model/base/number.hpp"

namespace foretrain {

/// Edge filter: leaves out wires that start at a vertex which is neither the source nor lets traffic through.
struct WiringGraph::Passable {
  const WiringGraph* wiring = nullptr;
  int source = 0;
  Through through = Through::anything;

  bool operator()(const Graph::edge_descriptor& edge) const {
    const int from = static_cast<int>(boost::source(edge, wiring->graph_));
    if (from != source && !wiring->transit_[at_index(from)]) return false;
    return through == Through::anything || wiring->graph_[edge].nvlink;
  }
};

WiringGraph::WiringGraph(const Node& node) : graph_(node.vertices.size()) {
  for (const NodeVertex& vertex : node.vertices) transit_.push_back(lets_traffic_through(vertex.kind));
}

int WiringGraph::add_vertex(bool transit) {
  transit_.push_back(transit);
  return static_cast<int>(boost::add_vertex(graph_));
}

void WiringGraph::add_wire(int from, int to, const Wire& wire) {
  boost::add_edge(at_index(from), at_index(to), wire, graph_);
}

std::vector<std::optional<Path>> WiringGraph::paths_from(int source, Through through) const {
  const std::size_t count = transit_.size();
  const PathCost unreachable{std::numeric_limits<int>::max(), BytesPerSecond(0)};
  std::vector<PathCost> cost(count);
  std::vector<Graph::edge_descriptor> arrived_by(count);

  const boost::filtered_graph<Graph, Passable> passable(graph_, Passable{this, source, through});
  const auto index = boost::get(boost::vertex_index, graph_);
  const auto extend = [](const PathCost& path, BytesPerSecond wire) {
    return PathCost{path.hops + 1, std::min(path.narrowest, wire)};
  };
  boost::dijkstra_shortest_paths(
      passable, at_index(source),
      boost::weight_map(boost::get(&Wire::bandwidth, graph_))
          .distance_map(boost::make_iterator_property_map(cost.begin(), index))
          .distance_compare(std::less<PathCost>{})
          .distance_combine(extend)
          .distance_inf(unreachable)
          .distance_zero(PathCost{})
          .visitor(boost::make_dijkstra_visitor(boost::record_edge_predecessors(
              boost::make_iterator_property_map(arrived_by.begin(), index), boost::on_edge_relaxed()))));

  std::vector<std::optional<Path>> paths(count);
  for (std::size_t target = 0; target < count; ++target) {
    if (cost[target] == unreachable) continue;
    Path path;
    path.cost = cost[target];
    path.vertices.push_back(static_cast<int>(target));
    for (std::size_t at = target; at != at_index(source);) {
      const Wire& wire = graph_[arrived_by[at]];
      if (wire.link >= 0) path.links.push_back(wire.link);
      path.latency += wire.latency;
      at = boost::source(arrived_by[at], graph_);
      path.vertices.push_back(static_cast<int>(at));
    }
    std::reverse(path.vertices.begin(), path.vertices.end());
    std::reverse(path.links.begin(), path.links.end());
    paths[target] = std::move(path);
  }
  return paths;
}

}  // namespace foretrain
