// Fat trees of two or three levels. A leaf's cables to the spines carry what hangs below ÷ oversubscription. Spines
// carry all that their leaves can send; so does the core for its pods.
//
// Without a draw a leaf's uplinks are one link each way, and so are a pod's. With adaptive routing a connection gets no
// more than one of them at a time: flowlets go to whichever is free (Alizadeh et al., CONGA, SIGCOMM 2014; Kandula et
// al., FLARE, 2007), so that uplinks share the load evenly over time. Collisions on the way down last a flowlet, and
// are taken to even out likewise. With a draw of hash each uplink is a link of its own. Uplink i of every leaf leads to
// spine i of its pod, which has one cable to each of the pod's leaves: the leaf's hash decides the way down, too. A
// spine's cables into the core are as many as its leaves ÷ pod_oversubscription, and cable j of spine i leads to a core
// switch that has spine i of every pod at its ports. The spine's hash decides the other pod's way down.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/hardware/fabric_routes.hpp"

namespace foretrain {
namespace {

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

int most_cards(const Cluster& cluster) {
  int cards = 0;
  for (const NodeKind& kind : cluster.kinds()) cards = std::max(cards, kind.network.nics_per_node);
  return cards;
}

BytesPerSecond card_rate(const Network& network) { return network.nic_bandwidth * network.efficiency; }

class FatTreeRoutes final : public FabricRoutes {
 public:
  FatTreeRoutes(const FatTree& tree, const Cluster& cluster, RouteDraw draw)
      : FabricRoutes(cluster), tree_(tree), uplinks_(tree.uplinks_of(cluster)) {
    const int cards = most_cards(cluster);
    leaves_per_group_ = tree.rails ? cards : 1;
    leaves_ = ceil_div(cluster.nodes, tree.nodes_per_leaf) * leaves_per_group_;
    if (draw) {
      ways_ = uplinks_;
      salt_ = summable_hash(static_cast<std::uint64_t>(tree.seed) * routes_drawn + static_cast<std::uint64_t>(*draw));
    }
    const BytesPerSecond card = card_rate(cluster.network);
    const int cards_per_leaf = tree.nodes_per_leaf * (tree.rails ? 1 : cards);
    add_links(2 * leaves_ * ways_, card * number(cards_per_leaf) / tree.oversubscription / ways_);
    first_of_pods_ = links();
    if (tree.nodes_per_pod > 0) {
      const double cards_per_pod = number(tree.nodes_per_pod) * cards;
      const double leaves_per_pod = number(tree.nodes_per_pod / tree.nodes_per_leaf * leaves_per_group_);
      cores_per_spine_ = std::max(1, static_cast<int>(std::lround(leaves_per_pod / tree.pod_oversubscription)));
      pods_ = ceil_div(cluster.nodes, tree.nodes_per_pod);
      pod_ways_ = draw ? uplinks_ * cores_per_spine_ : 1;
      add_links(2 * pods_ * pod_ways_,
                card * cards_per_pod / (tree.oversubscription * tree.pod_oversubscription) / pod_ways_);
    }
    if (!cluster.groups.empty()) fit_to_nodes(cluster);
    if (tree.routing == UplinkRouting::adaptive) limit_connections(cluster);
  }

  [[nodiscard]] std::string link_name(LinkId link) const override {
    const bool pod = link >= first_of_pods_;
    const int way = pod ? (link - first_of_pods_) / 2 % pod_ways_ : link / 2 % ways_;
    return name_of(link, (pod ? pod_ways_ : ways_) > 1 ? std::to_string(way) : "");
  }

  void append(FabricPort from, FabricPort to, std::uint64_t connection, LinkId first,
              std::vector<LinkId>& links) const override {
    if (leaf(from) == leaf(to)) return;
    const std::uint64_t hash = ways_ > 1 ? summable_hash(connection ^ salt_) : 0;
    const int spine = choose(hash, ways_, [&](int i) { return both_carry(leaf(from), leaf(to), i); });
    links.push_back(first + up_of_leaf(leaf(from), spine));
    if (pod(from) != pod(to)) {
      const int core = pod_ways_ > 1 ? core_of(pod(from), pod(to), spine, summable_hash(hash)) : 0;
      links.push_back(first + up_of_pod(pod(from), core));
      links.push_back(first + up_of_pod(pod(to), core) + 1);
    }
    links.push_back(first + up_of_leaf(leaf(to), spine) + 1);
  }

  [[nodiscard]] Seconds delay(FabricPort from, FabricPort to) const override {
    const double switches = leaf(from) == leaf(to) ? 1.0 : (pod(from) == pod(to) ? 3.0 : 5.0);
    return switch_latency_ * switches;
  }

  [[nodiscard]] BytesPerSecond most_rate(FabricPort from, FabricPort to) const override {
    if (cable_.empty() || leaf(from) == leaf(to)) return BytesPerSecond::infinity();
    BytesPerSecond rate = std::min(cable_[at_index(leaf(from))], cable_[at_index(leaf(to))]);
    if (pod(from) == pod(to)) return rate;
    for (const int at : {pod(from), pod(to)}) rate = std::min(rate, cable_[at_index(leaves_ + at)]);
    return rate;
  }
  [[nodiscard]] bool limits_connections() const override { return !cable_.empty(); }

  [[nodiscard]] double share_of(const Fault& fault, LinkId link) const override {
    const bool pod = link >= first_of_pods_;
    const int own = pod ? pod_ways_ : ways_, cables = pod ? uplinks_ * cores_per_spine_ : uplinks_;
    if (fault.concerns(name_of(link, ""))) return own;
    if (own > 1) return fault.concerns(link_name(link)) ? 1.0 : 0.0;
    double share = 0.0;
    for (int i = 0; cables > 1 && i < cables; ++i) {
      if (fault.concerns(name_of(link, std::to_string(i)))) share += 1.0 / cables;
    }
    return share;
  }

 private:
  void note_failed() override {
    for (LinkId link = 0; link < links(); ++link) any_failed_ = any_failed_ || !carries(bandwidth(link));
  }
  /// If nodes differ, cables upward are as many as the nodes below need; places that no node has taken are for such
  /// as the last one.
  void fit_to_nodes(const Cluster& cluster) {
    std::vector<BytesPerSecond> of_leaf(at_index(leaves_)), of_pod(at_index(pods_));
    const int below_leaves = leaves_ / leaves_per_group_ * tree_.nodes_per_leaf;
    const int below_pods = pods_ * tree_.nodes_per_pod;
    for (int place = 0; place < std::max(below_leaves, below_pods); ++place) {
      const Network& network = cluster.network_at(std::min(place, cluster.nodes - 1));
      const BytesPerSecond card = card_rate(network) / tree_.oversubscription;
      for (int i = 0; i < network.nics_per_node; ++i) {
        const FabricPort port{place, i};
        if (place < below_leaves) of_leaf[at_index(leaf(port))] += card;
        if (place < below_pods) of_pod[at_index(pod(port))] += card / tree_.pod_oversubscription;
      }
    }
    for (LinkId link = 0; link < links(); ++link) {
      const bool pod = link >= first_of_pods_;
      set_bandwidth(link, pod ? of_pod[at_index((link - first_of_pods_) / 2 / pod_ways_)] / pod_ways_
                              : of_leaf[at_index(link / 2 / ways_)] / ways_);
    }
  }
  /// One cable of each leaf, then of each pod, where some connection could use more.
  void limit_connections(const Cluster& cluster) {
    BytesPerSecond card;
    for (const NodeKind& kind : cluster.kinds()) card = std::max(card, card_rate(kind.network));
    std::vector<BytesPerSecond> cable;
    for (int i = 0; i < leaves_; ++i) cable.push_back(bandwidth(up_of_leaf(i, 0)) / uplinks_);
    for (int i = 0; i < pods_; ++i) cable.push_back(bandwidth(up_of_pod(i, 0)) / (uplinks_ * cores_per_spine_));
    if (*std::ranges::min_element(cable) < card) cable_ = std::move(cable);
  }

  /// `way`: which of the cables; empty for all of them.
  [[nodiscard]] std::string name_of(LinkId link, const std::string& way) const {
    const bool up = link % 2 == 0;
    if (link >= first_of_pods_) {
      const int pod = (link - first_of_pods_) / 2 / pod_ways_;
      return up ? fmt::format("pod{}>core{}", pod, way) : fmt::format("core{}>pod{}", way, pod);
    }
    const int leaf = link / 2 / ways_;
    const std::string name = tree_.rails ? fmt::format("leaf{}.{}", leaf / leaves_per_group_, leaf % leaves_per_group_)
                                         : fmt::format("leaf{}", leaf);
    return up ? fmt::format("{}>spine{}", name, way) : fmt::format("spine{}>{}", way, name);
  }

  [[nodiscard]] bool both_carry(int from, int to, int spine) const {
    return carries(bandwidth(up_of_leaf(from, spine))) && carries(bandwidth(up_of_leaf(to, spine) + 1));
  }
  [[nodiscard]] int core_of(int from, int to, int spine, std::uint64_t hash) const {
    const int first = spine * cores_per_spine_;
    return first + choose(hash, cores_per_spine_, [&](int i) {
             return carries(bandwidth(up_of_pod(from, first + i))) && carries(bandwidth(up_of_pod(to, first + i) + 1));
           });
  }
  /// The hash names one of those that are there: a cable that has failed takes part in no hash.
  template <typename IsThere>
  [[nodiscard]] int choose(std::uint64_t hash, int count, IsThere is_there) const {
    if (!any_failed_) return static_cast<int>(hash % static_cast<std::uint64_t>(count));
    std::vector<int> there;
    for (int i = 0; i < count; ++i) {
      if (is_there(i)) there.push_back(i);
    }
    return there.empty() ? 0 : there[hash % there.size()];
  }
  [[nodiscard]] LinkId up_of_leaf(int leaf, int way) const { return 2 * (leaf * ways_ + way); }
  [[nodiscard]] LinkId up_of_pod(int pod, int way) const { return first_of_pods_ + 2 * (pod * pod_ways_ + way); }
  [[nodiscard]] int leaf(FabricPort port) const {
    return port.node / tree_.nodes_per_leaf * leaves_per_group_ + (tree_.rails ? port.card : 0);
  }
  [[nodiscard]] int pod(FabricPort port) const { return tree_.nodes_per_pod > 0 ? port.node / tree_.nodes_per_pod : 0; }

  FatTree tree_;
  int uplinks_ = 1, cores_per_spine_ = 1;
  int leaves_per_group_ = 1;
  int leaves_ = 1, pods_ = 0;
  int ways_ = 1, pod_ways_ = 1;  ///< links that a leaf's, a pod's cables upward are
  LinkId first_of_pods_ = 0;
  std::uint64_t salt_ = 0;
  bool any_failed_ = false;
  std::vector<BytesPerSecond> cable_;  ///< by leaf, then by pod; empty where connections are not limited
};

}  // namespace

int FatTree::uplinks_of(const Cluster& cluster) const {
  if (uplinks > 0) return uplinks;
  const double cards = number(nodes_per_leaf) * (rails ? 1 : most_cards(cluster));
  return std::max(1, static_cast<int>(std::lround(cards / oversubscription)));
}

bool FatTree::chooses(const Cluster& cluster) const {
  const bool several_leaves = cluster.nodes > nodes_per_leaf || (rails && most_cards(cluster) > 1);
  return cluster.nodes > 1 && several_leaves && uplinks_of(cluster) > 1;
}

std::unique_ptr<FabricRoutes> FatTree::routes(const Cluster& cluster, RouteDraw draw) const {
  return std::make_unique<FatTreeRoutes>(*this, cluster, draws(cluster) ? draw : std::nullopt);
}

std::optional<HardwareProblem> FatTree::problem(const Cluster& cluster) const {
  if (nodes_per_pod % nodes_per_leaf != 0) {
    return of_fabric("nodes_per_pod", fmt::format("{} nodes are no whole leaves of {}", nodes_per_pod, nodes_per_leaf),
                     fmt::format("a multiple of {}", nodes_per_leaf));
  }
  const double leaves = number(ceil_div(cluster.nodes, nodes_per_leaf)) * (rails ? most_cards(cluster) : 1);
  if (4.0 * leaves * uplinks > number(most_links)) {
    return of_fabric("uplinks", "more links than can be counted", "a leaf's cables to the spines: some dozens at most");
  }
  return std::nullopt;
}

}  // namespace foretrain
