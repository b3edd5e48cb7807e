#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/hardware/topology.hpp"

namespace foretrain {

namespace {

struct TopologyKey {
  using Value = const Topology;
  Cluster cluster;

  bool operator==(const TopologyKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(cluster); }
  static std::uint64_t hash_of(const Cluster& cluster) {
    const Network& network = cluster.network;
    return foretrain::hash_of(cluster.node.name, cluster.nodes, cluster.gpus_per_node, cluster.groups.size(),
                              cluster.faults.size(), network.nics_per_node, network.nic_bandwidth, network.latency,
                              network.efficiency, network.oversubscription);
  }
  [[nodiscard]] std::size_t bytes(const Topology& topology) const {
    return 100'000 + 100 * at_index(topology.links() - topology.nodes() * topology.links_per_node()) +
           1000 * at_index(topology.nodes());
  }
};

}  // namespace

Topology Topology::of(const Cluster& cluster) {
  const auto same = [&cluster](const TopologyKey& key) { return key.cluster == cluster; };
  if (const auto known = session().find<TopologyKey>(TopologyKey::hash_of(cluster), same)) return *known;
  return *session().keep(TopologyKey{cluster}, Topology(cluster));
}

}  // namespace foretrain
