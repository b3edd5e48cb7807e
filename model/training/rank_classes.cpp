#include "model/training/rank_classes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "model/base/equitable_partition.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

using Vertex = ColouredGraph::Vertex;

constexpr std::size_t most_lanes = 256;

/// Ranks, groups, flows and links as one graph. Ranks come first.
class ClusterGraph {
 public:
  ClusterGraph(const Topology& topology, const std::vector<int>& stage_of_rank,
               const std::vector<double>& speed_of_rank, Symmetry symmetry)
      : topology_(topology),
        ranks_(stage_of_rank.size()),
        link_vertex_(static_cast<std::size_t>(topology.links()), -1) {
    for (std::size_t rank = 0; rank < stage_of_rank.size(); ++rank) {
      const auto number = static_cast<int>(rank);
      const double own = symmetry == Symmetry::used ? topology.group_of_node(topology.node_of(number)) : number;
      graph_.add_vertex(colour({Kind::rank, static_cast<double>(stage_of_rank[rank]), speed_of_rank[rank], own}));
    }
  }

  /// Once for each grouping.
  void add_groups(const GroupedTransfer& transfer) {
    const auto [known, is_new] = groups_.try_emplace(transfer.grouping);
    if (!is_new) return;
    known->second.assign(transfer.groups->size(), -1);
    for (std::size_t p = 0; p < transfer.parts.size(); ++p) {
      for (const int group : transfer.parts[p].groups) {
        const Vertex vertex = graph_.add_vertex(
            colour({Kind::group, static_cast<double>(transfer.grouping), static_cast<double>(p), 0.0}));
        for (const int rank : (*transfer.groups)[at_index(group)]) graph_.edges.emplace_back(rank, vertex);
        known->second[at_index(group)] = vertex;
      }
    }
  }

  void add_flows(const GroupedTransfer& transfer) {
    const std::vector<Vertex>& groups = groups_.at(transfer.grouping);
    const auto number = static_cast<double>(transfers_++);
    const std::vector<int> group_of = group_of_rank(*transfer.groups, topology_.gpus());
    Vertex whole = -1;  // joined to all groups: what belongs to none of them alone
    for (std::size_t p = 0; p < transfer.parts.size(); ++p) {
      const std::vector<LoweredCollective::Phase>& phases = transfer.parts[p].lowered->phases;
      for (std::size_t k = 0; k < phases.size(); ++k) {
        const double phase = static_cast<double>(p) * 1e6 + static_cast<double>(k);
        for (const Flow& flow : phases[k].flows) {
          if (flow.source == flow.destination || !(flow.bytes > Bytes(0.0))) continue;
          const int group = group_of_flow(flow, group_of);
          if (group < 0 && whole < 0) {
            whole = graph_.add_vertex(colour({Kind::whole, number, 0.0, 0.0}));
            for (const Vertex other : groups) graph_.edges.emplace_back(whole, other);
          }
          const Vertex vertex = add_flow(colour({Kind::flow, number, phase, flow.bytes.value()}), flow.source,
                                         flow.destination, topology_.most_rate(flow.source, flow.destination));
          graph_.edges.emplace_back(group < 0 ? whole : groups[at_index(group)], vertex);
        }
      }
    }
  }

  void add_background(std::span<const BackgroundFlow::Route> background) {
    for (const BackgroundFlow::Route& route : background) {
      const auto number = static_cast<double>(transfers_++);
      add_flow(colour({Kind::flow, number, 0.0, 0.0}), route.source, route.destination,
               std::min(route.rate, topology_.most_rate(route.source, route.destination)));
    }
  }

  /// The classes of ranks and groups; see most_lanes.
  [[nodiscard]] std::vector<std::int32_t> partition() const {
    LimitedPartition limited = limited_partition(graph_, Neighbours(graph_), ranks_, most_lanes);
    return limited.complete ? std::move(limited.class_of) : by_groups_alone(limited.class_of);
  }
  /// By grouping: the vertices of its groups.
  [[nodiscard]] const std::map<int, std::vector<Vertex>>& groups() const { return groups_; }

 private:
  /// Ranks of different colours stay apart; else only groups tell them apart. Vertices that are neither are isolated.
  [[nodiscard]] std::vector<std::int32_t> by_groups_alone(const std::vector<std::int32_t>& colour) const {
    ColouredGraph members{graph_.colour};
    const auto first = 1 + *std::ranges::max_element(graph_.colour);
    for (std::size_t rank = 0; rank < ranks_; ++rank) members.colour[rank] = first + colour[rank];
    for (const auto& [a, b] : graph_.edges) {
      if (at_index(a) < ranks_) members.edges.emplace_back(a, b);
    }
    return coarsest_equitable_partition(members, Neighbours(members));
  }

  enum class Kind { rank, group, flow, link, connection, whole };
  using Colour = std::tuple<Kind, double, double, double>;

  std::int32_t colour(const Colour& of) {
    if (last_colour_ == nullptr || last_colour_->first != of) {
      last_colour_ = &*colours_.try_emplace(of, static_cast<std::int32_t>(colours_.size())).first;
    }
    return last_colour_->second;
  }

  Vertex add_flow(std::int32_t of_colour, EndpointId source, EndpointId destination, BytesPerSecond most_rate) {
    const Vertex flow = graph_.add_vertex(of_colour);
    crossed_.clear();
    topology_.append_route(source, destination, crossed_);
    for (const LinkId link : crossed_) {
      Vertex& vertex = link_vertex_[at_index(link)];
      if (vertex < 0) {
        vertex = graph_.add_vertex(colour({Kind::link, topology_.link_bandwidth(link).value(), 0.0, 0.0}));
      }
      graph_.edges.emplace_back(flow, vertex);
    }
    if (is_finite(most_rate)) {  // flows between the same two ends share a connection
      const auto [connection, is_new] = connections_.try_emplace(std::pair(source, destination), -1);
      if (is_new) connection->second = graph_.add_vertex(colour({Kind::connection, most_rate.value(), 0.0, 0.0}));
      graph_.edges.emplace_back(flow, connection->second);
    }
    return flow;
  }

  const Topology& topology_;
  std::size_t ranks_;
  ColouredGraph graph_;
  std::map<Colour, std::int32_t> colours_;
  const std::pair<const Colour, std::int32_t>* last_colour_ = nullptr;
  std::vector<Vertex> link_vertex_;
  std::map<std::pair<EndpointId, EndpointId>, Vertex> connections_;
  std::map<int, std::vector<Vertex>> groups_;
  std::vector<LinkId> crossed_;
  int transfers_ = 0;
};

/// Transfers of the same groups by the same algorithm put the same flows on the links, up to a factor: one of them says
/// all.
using Structure = std::tuple<int, std::string, std::size_t, std::size_t>;
Structure structure_of(const GroupedTransfer& transfer) {
  std::string algorithms;
  std::size_t phases = 0, flows = 0;
  for (const GroupedTransfer::Part& part : transfer.parts) {
    algorithms += part.lowered->chosen_algorithm + ",";
    phases += part.lowered->phases.size();
    for (const LoweredCollective::Phase& phase : part.lowered->phases) flows += phase.flows.size();
  }
  return {transfer.grouping, std::move(algorithms), phases, flows};
}

}  // namespace

std::vector<int> group_of_rank(const std::vector<std::vector<int>>& groups, int ranks) {
  std::vector<int> group_of(static_cast<std::size_t>(ranks), -1);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const int rank : groups[group]) group_of[at_index(rank)] = static_cast<int>(group);
  }
  return group_of;
}

int group_of_flow(const Flow& flow, const std::vector<int>& group_of_rank) {
  for (const EndpointId end : {flow.source, flow.destination}) {
    if (std::cmp_less(end, group_of_rank.size())) return group_of_rank[at_index(end)];
  }
  return -1;
}

RankClasses RankClasses::one_per_stage(int stages, const std::vector<int>& stage_of_rank) {
  RankClasses classes;
  classes.lane_of_rank = stage_of_rank;
  for (int stage = 0; stage < stages; ++stage) {
    const auto first = std::ranges::find(stage_of_rank, stage) - stage_of_rank.begin();
    const auto ranks = std::ranges::count(stage_of_rank, stage);
    classes.lanes.push_back({stage, static_cast<int>(first), static_cast<int>(ranks), 1.0});
  }
  return classes;
}

RankClasses classify(const std::vector<GroupedTransfer>& transfers, const std::vector<int>& stage_of_rank,
                     const std::vector<double>& speed_of_rank, const Topology& topology,
                     std::span<const BackgroundFlow> background, Symmetry symmetry) {
  ClusterGraph graph(topology, stage_of_rank, speed_of_rank, symmetry);
  // Ranks that are all in the same groups are told apart by nothing that these groups send.
  const bool by_traffic =
      std::ranges::any_of(transfers, [](const GroupedTransfer& transfer) { return transfer.groups->size() > 1; });
  std::set<Structure> seen;
  for (const GroupedTransfer& transfer : transfers) {
    graph.add_groups(transfer);
    if (by_traffic && seen.insert(structure_of(transfer)).second) graph.add_flows(transfer);
  }
  if (by_traffic) graph.add_background(background_routes(background, topology));
  const std::vector<std::int32_t> class_of = graph.partition();

  RankClasses classes;
  std::vector<int> ranks(stage_of_rank.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::erase_if(ranks, [&](int rank) { return stage_of_rank[at_index(rank)] < 0; });
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return stage_of_rank[at_index(rank)]; });
  classes.lane_of_rank.assign(stage_of_rank.size(), -1);
  std::map<std::int32_t, int> lane_of_class;
  for (const int rank : ranks) {
    const std::size_t at = at_index(rank);
    const auto [lane, is_new] = lane_of_class.try_emplace(class_of[at], static_cast<int>(classes.lanes.size()));
    if (is_new) classes.lanes.push_back({stage_of_rank[at], rank, 0, speed_of_rank[at]});
    ++classes.lanes[at_index(lane->second)].ranks;
    classes.lane_of_rank[at] = lane->second;
  }
  for (const auto& [grouping, vertices] : graph.groups()) {
    classes.class_of_group.resize(std::max(classes.class_of_group.size(), static_cast<std::size_t>(grouping) + 1));
    std::map<std::int32_t, int> known;
    for (const Vertex vertex : vertices) {
      classes.class_of_group[at_index(grouping)].push_back(
          known.try_emplace(class_of[at_index(vertex)], static_cast<int>(known.size())).first->second);
    }
  }
  return classes;
}

}  // namespace foretrain
