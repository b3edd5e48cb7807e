#include "model/training/step/rank_classes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "model/base/equitable_partition.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

using Vertex = ColouredGraph::Vertex;

constexpr std::size_t most_lanes = 256;

/// Ranks, groups, flows and links as one graph. Ranks come first.
///
/// If stages repeat each other, `ranks` of them stand for all: rank r is vertex r mod `ranks`, links likewise, and
/// what stages send to each other, they send to themselves. What a stage of the whole graph lacks of that, because
/// it is the first or the last or has no such layer, is one whole transfer, which all of a class lack alike.
class ClusterGraph {
 public:
  ClusterGraph(const Topology& topology, const std::vector<int>& stage_of_rank,
               const std::vector<double>& speed_of_rank, Symmetry symmetry, std::size_t ranks)
      : topology_(topology),
        ranks_(ranks),
        link_vertex_(ranks < stage_of_rank.size()
                         ? ranks / at_index(topology.gpus_per_node()) * at_index(topology.links_per_node())
                         : at_index(topology.links()),
                     -1) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto number = static_cast<int>(rank);
      const double own = symmetry == Symmetry::used ? topology.group_of_node(topology.node_of(number)) : number;
      graph_.add_vertex(colour({Kind::rank, static_cast<double>(stage_of_rank[rank]), speed_of_rank[rank], own, 0.0}));
    }
  }

  /// Once for each grouping.
  void add_groups(const GroupedTransfer& transfer) {
    if (same_grouping_.contains(transfer.grouping)) return;
    const bool repeats = at_index(transfer.shift) % ranks_ == 0;
    same_grouping_[transfer.grouping] = repeats ? transfer.model : transfer.grouping;
    if (repeats && transfer.model != transfer.grouping) return;
    groupings_.push_back(&transfer);
    const auto known = groups_.try_emplace(transfer.grouping, transfer.groups->size(), -1).first;
    for (std::size_t p = 0; p < transfer.parts.size(); ++p) {
      for (const int group : transfer.parts[p].groups) {
        const Vertex vertex = graph_.add_vertex(
            colour({Kind::group, static_cast<double>(transfer.grouping), static_cast<double>(p), 0.0, 0.0}));
        for (const int rank : (*transfer.groups)[at_index(group)]) graph_.edges.emplace_back(vertex_of(rank), vertex);
        known->second[at_index(group)] = vertex;
      }
    }
  }

  /// Once for transfers of the same groups and pattern.
  void add_flows(const GroupedTransfer& transfer) {
    const int same = same_grouping_.at(transfer.grouping);
    if (transfer.pattern && !known_.emplace(same, *transfer.pattern).second) return;
    const std::vector<Vertex>& groups = groups_of(transfer.grouping);
    const auto number = static_cast<double>(transfers_++);
    const std::vector<int> group_of = group_of_rank(*transfer.groups, topology_.gpus());
    Vertex whole = -1;  // joined to all groups: what belongs to none of them alone
    for (std::size_t p = 0; p < transfer.parts.size(); ++p) {
      const std::vector<LoweredCollective::Phase>& phases = transfer.parts[p].lowered->phases;
      for (std::size_t k = 0; k < phases.size(); ++k) {
        const double phase = static_cast<double>(p) * 1e6 + static_cast<double>(k);
        for (const Flow& flow : phases[k].flows) {
          if (flow.source == flow.destination || !(flow.bytes > Bytes(0.0))) continue;
          between_gpus_ = between_gpus_ && topology_.is_gpu(flow.source) && topology_.is_gpu(flow.destination);
          const int group = group_of_flow(flow, group_of);
          if (group < 0 && whole < 0) {
            whole = graph_.add_vertex(colour({Kind::whole, number, 0.0, 0.0, 0.0}));
            for (const Vertex other : groups) graph_.edges.emplace_back(whole, other);
          }
          const Vertex vertex =
              add_flow(colour({Kind::flow, number, phase, flow.bytes.value(), flow.weight}), flow.source,
                       flow.destination, topology_.most_rate(flow.source, flow.destination));
          graph_.edges.emplace_back(group < 0 ? whole : groups[at_index(group)], vertex);
        }
      }
    }
  }

  void add_background(std::span<const Flow> background) {
    for (const Flow& route : background) {
      const auto number = static_cast<double>(transfers_++);
      add_flow(colour({Kind::flow, number, 0.0, 0.0, 0.0}), route.source, route.destination,
               std::min(route.most_rate, topology_.most_rate(route.source, route.destination)));
    }
  }

  /// The classes of ranks and groups; see most_lanes.
  [[nodiscard]] std::vector<std::int32_t> partition() const {
    LimitedPartition limited = limited_partition(graph_, Neighbours(graph_), ranks_, most_lanes);
    return limited.complete ? std::move(limited.class_of) : by_groups_alone(limited.class_of);
  }
  [[nodiscard]] const std::vector<Vertex>& groups_of(int grouping) const {
    return groups_.at(same_grouping_.at(grouping));
  }
  [[nodiscard]] Vertex vertex_of(int rank) const { return static_cast<Vertex>(at_index(rank) % ranks_); }
  /// Whether a stage's classes are read off this graph, of which `class_of` is the partition. Each stage and each part
  /// of a transfer is one class, and no flow crosses host memory, whose cards depend on the node.
  [[nodiscard]] bool stands_for_stages(const std::vector<std::int32_t>& class_of) const {
    const auto classes = [&](const auto& vertices) {
      std::set<std::int32_t> different;
      for (const Vertex vertex : vertices) different.insert(class_of[at_index(vertex)]);
      return different.size();
    };
    const auto whole = [&](const GroupedTransfer* grouping) {
      return classes(groups_of(grouping->grouping)) == grouping->parts.size();
    };
    return between_gpus_ && classes(std::views::iota(Vertex{0}, static_cast<Vertex>(ranks_))) == 1 &&
           std::ranges::all_of(groupings_, whole);
  }

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
  using Colour = std::tuple<Kind, double, double, double, double>;

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
      Vertex& vertex = link_vertex_[at_index(link) % link_vertex_.size()];
      if (vertex < 0) {
        vertex = graph_.add_vertex(colour({Kind::link, topology_.link_bandwidth(link).value(), 0.0, 0.0, 0.0}));
      }
      graph_.edges.emplace_back(flow, vertex);
    }
    if (is_finite(most_rate)) {  // flows between the same two ends share a connection
      const auto [connection, is_new] = connections_.try_emplace(std::pair(source, destination), -1);
      if (is_new) connection->second = graph_.add_vertex(colour({Kind::connection, most_rate.value(), 0.0, 0.0, 0.0}));
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
  std::vector<const GroupedTransfer*> groupings_;  ///< the first of each, repeated ones left out
  std::map<int, int> same_grouping_;               ///< by grouping: the one that it repeats, or itself
  std::map<int, std::vector<Vertex>> groups_;
  std::set<std::pair<int, std::uint64_t>> known_;  ///< groupings and patterns
  bool between_gpus_ = true;
  std::vector<LinkId> crossed_;
  int transfers_ = 0;
};

}  // namespace

std::vector<int> group_of_rank(const RankGroups& groups, int ranks) {
  std::vector<int> group_of(static_cast<std::size_t>(ranks), -1);
  int number = 0;
  for (const std::vector<int>& group : groups) {
    for (const int rank : group) group_of[at_index(rank)] = number;
    ++number;
  }
  return group_of;
}

int group_of_flow(const Flow& flow, const std::vector<int>& group_of_rank) {
  int group = -1;
  for (const EndpointId end : {flow.source, flow.destination}) {
    if (!std::cmp_less(end, group_of_rank.size())) continue;
    const int own = group_of_rank[at_index(end)];
    // A message that another group's GPU forwards is nobody's alone.
    if (own < 0 || (group >= 0 && own != group)) return -1;
    group = own;
  }
  return group;
}

RankClasses RankClasses::one_per_stage(int stages, const std::vector<int>& stage_of_rank) {
  RankClasses classes;
  classes.class_of_rank = stage_of_rank;
  for (int stage = 0; stage < stages; ++stage) classes.rank_classes.push_back({stage, -1, 0, 1.0});
  for (int rank = 0; std::cmp_less(rank, stage_of_rank.size()); ++rank) {
    const int stage = stage_of_rank[at_index(rank)];
    if (stage < 0) continue;
    RankClass& rank_class = classes.rank_classes[at_index(stage)];
    if (rank_class.ranks++ == 0) rank_class.first_rank = rank;
  }
  return classes;
}

namespace {

/// After how many ranks everything repeats itself, if it does: the ranks of a stage where these fill nodes, and nodes
/// and connections are all alike.
std::size_t period_of(const std::vector<int>& stage_of_rank, const std::vector<double>& speed_of_rank,
                      const Topology& topology, std::span<const BackgroundFlow> background, Symmetry symmetry) {
  const std::size_t all = stage_of_rank.size();
  const std::size_t ranks = all / (1 + at_index(stage_of_rank.back()));
  const auto same_speed = [&](double speed) { return speed == speed_of_rank.front(); };
  const bool repeats = symmetry == Symmetry::used && ranks > 0 && all % ranks == 0 &&
                       ranks % at_index(topology.gpus_per_node()) == 0 && background.empty() &&
                       topology.nodes_are_alike() && !topology.limits_connections() &&
                       std::ranges::all_of(speed_of_rank, same_speed);
  if (!repeats) return all;
  for (std::size_t rank = 0; rank < all; ++rank) {
    if (at_index(stage_of_rank[rank]) != rank / ranks) return all;
  }
  return ranks;
}

RankClasses read_classes(const ClusterGraph& graph, const std::vector<std::int32_t>& class_of,
                         const std::vector<GroupedTransfer>& transfers, const std::vector<int>& stage_of_rank,
                         const std::vector<double>& speed_of_rank) {
  RankClasses classes;
  std::vector<int> ranks(stage_of_rank.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::erase_if(ranks, [&](int rank) { return stage_of_rank[at_index(rank)] < 0; });
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return stage_of_rank[at_index(rank)]; });
  std::vector<int> class_of_rank(stage_of_rank.size(), -1);
  std::map<std::pair<int, std::int32_t>, int> rank_class_of;
  for (const int rank : ranks) {
    const std::size_t at = at_index(rank);
    const std::int32_t id = class_of[at_index(graph.vertex_of(rank))];
    const auto [rank_class, is_new] =
        rank_class_of.try_emplace({stage_of_rank[at], id}, static_cast<int>(classes.rank_classes.size()));
    if (is_new) classes.rank_classes.push_back({stage_of_rank[at], rank, 0, speed_of_rank[at]});
    ++classes.rank_classes[at_index(rank_class->second)].ranks;
    class_of_rank[at] = rank_class->second;
  }
  for (const GroupedTransfer& transfer : transfers) {
    const std::size_t grouping = at_index(transfer.grouping);
    classes.class_of_group.resize(std::max(classes.class_of_group.size(), grouping + 1));
    if (!classes.class_of_group[grouping].empty()) continue;
    std::map<std::int32_t, int> known;
    for (const Vertex vertex : graph.groups_of(transfer.grouping)) {
      classes.class_of_group[grouping].push_back(
          known.try_emplace(class_of[at_index(vertex)], static_cast<int>(known.size())).first->second);
    }
    std::vector<std::set<int>> rank_classes(known.size());
    std::size_t number = 0;
    for (const std::vector<int>& group : *transfer.groups) {
      std::set<int>& own = rank_classes[at_index(classes.class_of_group[grouping][number++])];
      for (const int rank : group) own.insert(class_of_rank[at_index(rank)]);
    }
    classes.rank_classes_of.resize(classes.class_of_group.size());
    for (const std::set<int>& own : rank_classes)
      classes.rank_classes_of[grouping].emplace_back(own.begin(), own.end());
  }
  classes.class_of_rank = std::move(class_of_rank);
  return classes;
}

}  // namespace

RankClasses classify(const std::vector<GroupedTransfer>& transfers, const std::vector<int>& stage_of_rank,
                     const std::vector<double>& speed_of_rank, const Topology& topology,
                     std::span<const BackgroundFlow> background, Symmetry symmetry) {
  // Ranks that are all in the same groups are distinguished by nothing that these groups send.
  const bool by_traffic =
      std::ranges::any_of(transfers, [](const GroupedTransfer& transfer) { return transfer.groups->size() > 1; });
  for (std::size_t ranks = period_of(stage_of_rank, speed_of_rank, topology, background, symmetry);;
       ranks = stage_of_rank.size()) {
    ClusterGraph graph(topology, stage_of_rank, speed_of_rank, symmetry, ranks);
    for (const GroupedTransfer& transfer : transfers) {
      graph.add_groups(transfer);
      if (by_traffic) graph.add_flows(transfer);
    }
    if (by_traffic) graph.add_background(background_flows(background, topology));
    const std::vector<std::int32_t> class_of = graph.partition();
    if (ranks == stage_of_rank.size() || graph.stands_for_stages(class_of)) {
      return read_classes(graph, class_of, transfers, stage_of_rank, speed_of_rank);
    }
  }
}

}  // namespace foretrain
