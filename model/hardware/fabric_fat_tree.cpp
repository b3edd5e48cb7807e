// Fat trees of two or three levels. A leaf's cables to the spines are one link each way: what hangs below ÷
// oversubscription. Spines carry all that their leaves can send; so does the core for its pods.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/number.hpp"
#include "model/hardware/fabric_routes.hpp"

namespace foretrain {
namespace {

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

class FatTreeRoutes final : public FabricRoutes {
 public:
  FatTreeRoutes(const FatTree& tree, const Cluster& cluster)
      : tree_(tree), switch_latency_(cluster.network.fabric.switch_latency) {
    int cards = cluster.network.nics_per_node;
    for (const NodeGroup& group : cluster.groups) cards = std::max(cards, group.network.nics_per_node);
    leaves_per_group_ = tree.rails ? cards : 1;
    leaves_ = ceil_div(cluster.nodes, tree.nodes_per_leaf) * leaves_per_group_;
    const BytesPerSecond card = cluster.network.nic_bandwidth * cluster.network.efficiency;
    const int cards_per_leaf = tree.nodes_per_leaf * (tree.rails ? 1 : cards);
    add_links(2 * leaves_, card * number(cards_per_leaf) / tree.oversubscription);
    if (tree.nodes_per_pod > 0) {
      const double cards_per_pod = number(tree.nodes_per_pod) * cards;
      pods_ = ceil_div(cluster.nodes, tree.nodes_per_pod);
      add_links(2 * pods_, card * cards_per_pod / (tree.oversubscription * tree.pod_oversubscription));
    }
    if (!cluster.groups.empty()) fit_to_nodes(cluster);
  }

  [[nodiscard]] std::string link_name(LinkId link) const override {
    const bool up = link % 2 == 0;
    if (link >= 2 * leaves_) {
      const int pod = (link - 2 * leaves_) / 2;
      return up ? fmt::format("pod{}>core", pod) : fmt::format("core>pod{}", pod);
    }
    const int leaf = link / 2;
    const std::string name = tree_.rails ? fmt::format("leaf{}.{}", leaf / leaves_per_group_, leaf % leaves_per_group_)
                                         : fmt::format("leaf{}", leaf);
    return up ? name + ">spine" : "spine>" + name;
  }

  void append(FabricPort from, FabricPort to, LinkId first, std::vector<LinkId>& links) const override {
    if (leaf(from) == leaf(to)) return;
    links.push_back(first + 2 * leaf(from));
    if (pod(from) != pod(to)) {
      links.push_back(first + 2 * leaves_ + 2 * pod(from));
      links.push_back(first + 2 * leaves_ + 2 * pod(to) + 1);
    }
    links.push_back(first + 2 * leaf(to) + 1);
  }

  [[nodiscard]] Seconds delay(FabricPort from, FabricPort to) const override {
    const double switches = leaf(from) == leaf(to) ? 1.0 : (pod(from) == pod(to) ? 3.0 : 5.0);
    return switch_latency_ * switches;
  }

 private:
  /// Where nodes differ, cables upward are as many as the nodes below need; places that no node has taken are for such
  /// as the last one.
  void fit_to_nodes(const Cluster& cluster) {
    std::vector<BytesPerSecond> need(at_index(links()));  // of links upward
    const int below_leaves = leaves_ / leaves_per_group_ * tree_.nodes_per_leaf;
    const int below_pods = pods_ * tree_.nodes_per_pod;
    for (int place = 0; place < std::max(below_leaves, below_pods); ++place) {
      const Network& network = cluster.network_at(std::min(place, cluster.nodes - 1));
      const BytesPerSecond card = network.nic_bandwidth * network.efficiency / tree_.oversubscription;
      for (int i = 0; i < network.nics_per_node; ++i) {
        const FabricPort port{place, i};
        const LinkId leaf_up = 2 * leaf(port), pod_up = 2 * leaves_ + 2 * pod(port);
        if (place < below_leaves) need[at_index(leaf_up)] += card;
        if (place < below_pods) need[at_index(pod_up)] += card / tree_.pod_oversubscription;
      }
    }
    for (LinkId link = 0; link < links(); ++link) {
      const LinkId up = link - link % 2;  // as wide as its way down
      set_bandwidth(link, need[at_index(up)]);
    }
  }
  [[nodiscard]] int leaf(FabricPort port) const {
    return port.node / tree_.nodes_per_leaf * leaves_per_group_ + (tree_.rails ? port.card : 0);
  }
  [[nodiscard]] int pod(FabricPort port) const { return tree_.nodes_per_pod > 0 ? port.node / tree_.nodes_per_pod : 0; }

  FatTree tree_;
  Seconds switch_latency_;
  int leaves_per_group_ = 1;
  int leaves_ = 1, pods_ = 0;
};

}  // namespace

std::unique_ptr<FabricRoutes> FatTree::routes(const Cluster& cluster) const {
  return std::make_unique<FatTreeRoutes>(*this, cluster);
}

std::optional<HardwareProblem> FatTree::problem(const Cluster& /*any*/) const {
  if (nodes_per_leaf < 1) return of_fabric("nodes_per_leaf", "leaves without nodes", "1 or more");
  if (nodes_per_pod < 0 || nodes_per_pod % nodes_per_leaf != 0) {
    return of_fabric("nodes_per_pod", fmt::format("{} nodes are no whole leaves of {}", nodes_per_pod, nodes_per_leaf),
                     fmt::format("a multiple of {}", nodes_per_leaf));
  }
  if (!(oversubscription >= 1.0) || !(pod_oversubscription >= 1.0)) {
    return of_fabric("oversubscription", "below 1", "1 for a full fabric, 2 where half of it is missing");
  }
  return std::nullopt;
}

}  // namespace foretrain
