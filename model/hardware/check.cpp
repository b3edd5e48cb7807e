#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/hardware/check.hpp"
#include "model/hardware/fabric_routes.hpp"
#include "model/hardware/node_routes.hpp"

namespace foretrain {
namespace {

using Problem = std::optional<HardwareProblem>;

class FaultCheck {
 public:
  explicit FaultCheck(const Cluster& cluster) : cluster_(cluster) {}

  Problem check() {
    for (std::size_t i = 0; i < cluster_.faults.size(); ++i) {
      key_ = fmt::format("faults[{}]", i);
      const Fault& fault = cluster_.faults[i];
      if (auto problem = fault.node < 0 ? check_fabric_link(fault) : check_part(fault)) return problem;
    }
    return check_ways();
  }

 private:
  [[nodiscard]] HardwareProblem about(const char* key, std::string text, std::string expected) const {
    return {*key == '\0' ? key_ : key_ + "." + key, std::move(text), std::move(expected)};
  }

  [[nodiscard]] Problem check_fabric_link(const Fault& fault) const {
    const std::unique_ptr<FabricRoutes> fabric = make_fabric_routes(cluster_);
    std::vector<std::string> names;
    bool known = false;
    for (LinkId link = 0; link < fabric->links(); ++link) {
      names.push_back(fabric->link_name(link));
      known = known || fabric->share_of(fault, link) > 0.0;
    }
    if (!known) return require_known(fault, names, "the fabric");
    if (!fault.failed) return std::nullopt;
    fabric->apply(cluster_.faults, cluster_.network.efficiency);
    for (LinkId link = 0; link < fabric->links(); ++link) {
      if (carries(fabric->bandwidth(link))) continue;  // on others of its cables
      // Links are all cables between two places, and routing is minimal: no traffic goes round.
      return about("link", fmt::format("without {} no other path is left", fault.link),
                   "the remaining bandwidth, for example 50 %");
    }
    return std::nullopt;
  }

  [[nodiscard]] Problem check_part(const Fault& fault) const {
    if (fault.node >= cluster_.nodes) {
      return about("node", fmt::format("node {} does not exist", fault.node),
                   fmt::format("0 to {}", cluster_.nodes - 1));
    }
    const Node& node = cluster_.node_at(fault.node);
    const Network& network = cluster_.network_at(fault.node);
    if (fault.gpu >= 0) {
      const int gpus = cluster_.gpus_on(fault.node);
      if (fault.gpu < gpus) return std::nullopt;
      return about("gpu", fmt::format("GPU {} does not exist", fault.gpu), fmt::format("0 to {}", gpus - 1));
    }
    if (fault.card >= 0) {
      const int cards = network.nics_per_node;
      if (fault.card < cards) return std::nullopt;
      return about("card", fmt::format("card {} does not exist", fault.card),
                   cards == 0 ? "a node with NICs" : fmt::format("0 to {}", cards - 1));
    }
    std::vector<std::string> names;
    for (const DirectedLink& link : find_node_routes(node, network).links) {
      names.push_back(link.name);
      const bool only_way = link.kind == LinkKind::memory || link.name == "node>fabric" || link.name == "fabric>node";
      if (fault.failed && only_way && fault.concerns(link.name)) {
        return about("link", fmt::format("there is no way round {}", link.name), "the remaining bandwidth");
      }
    }
    return require_known(fault, names, node.name);
  }

  [[nodiscard]] Problem require_known(const Fault& fault, const std::vector<std::string>& names,
                                      const std::string& owner) const {
    const auto concerned = [&fault](const std::string& name) { return fault.concerns(name); };
    if (std::ranges::any_of(names, concerned)) return std::nullopt;
    if (names.empty()) return about("link", fmt::format("{} has no links", owner), "another fabric, or a node's link");
    const auto few = static_cast<std::ptrdiff_t>(std::min<std::size_t>(names.size(), 8));
    return about("link", fmt::format("{} has no link {}", owner, fault.link),
                 fmt::format("one such as {}", fmt::join(names.begin(), names.begin() + few, ", ")));
  }

  /// Each node must stay connected without its failed links, and reach the fabric.
  [[nodiscard]] Problem check_ways() {
    std::vector<int> checked;
    for (std::size_t i = cluster_.faults.size(); i-- > 0;) {
      const int node = cluster_.faults[i].node;
      if (node < 0 || cluster_.faults[i].gpu >= 0 || std::ranges::find(checked, node) != checked.end()) continue;
      checked.push_back(node);
      key_ = fmt::format("faults[{}]", i);
      try {
        const NodeRoutes routes =
            find_node_routes(cluster_.node_at(node), cluster_.network_at(node), faults_of_node(cluster_, node));
        if (cluster_.nodes == 1) continue;
        for (int endpoint = 0; endpoint < routes.endpoints(); ++endpoint) {
          if (!routes.cards[at_index(endpoint)].empty()) continue;
          return about("", fmt::format("node {} has no working NIC", node),
                       "a working NIC, or a cluster without that node");
        }
      } catch (const ImpossiblePlan& error) {
        return about("", error.what(), "links by which every GPU and CPU still reaches all others");
      }
    }
    return std::nullopt;
  }

  const Cluster& cluster_;
  std::string key_;
};

}  // namespace

HardwareProblem of_fabric(const char* key, std::string text, std::string expected) {
  return {fmt::format("network.fabric.{}", key), std::move(text), std::move(expected)};
}

bool carries(BytesPerSecond bandwidth) { return bandwidth > BytesPerSecond(0.0) && is_finite(bandwidth); }

std::optional<HardwareProblem> check_network(const Cluster& cluster) {
  const auto of_shape = [&](const auto& shape) { return shape.problem(cluster); };
  if (auto problem = std::visit(of_shape, cluster.network.fabric.shape)) return problem;
  return FaultCheck(cluster).check();
}

}  // namespace foretrain
