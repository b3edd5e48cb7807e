// The order of a ring through GPUs of a node.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "model/base/error.hpp"
#include "model/hardware/ring_order.hpp"
#include "model/hardware/topology_impl.hpp"

namespace foretrain {

std::vector<int> Topology::widest_ring(const std::vector<int>& ranks, const std::vector<LinkId>& used_links) const {
  if (ranks.empty()) return {};
  const int node = node_of(ranks.front());
  const NodeRoutes& local = impl_->tables(node);
  std::vector<int> members = ranks;
  std::sort(members.begin(), members.end());
  for (const int rank : members) {
    if (rank < 0 || rank >= gpus() || node_of(rank) != node) {
      throw InternalError("widest_ring: the ranks must be GPUs of one node");
    }
  }
  const std::unordered_set<LinkId> used(used_links.begin(), used_links.end());

  // Direct NVLinks are worth a search; a switch or a PCIe tree carries any order, so the natural one will do.
  if (static_cast<int>(members.size()) <= widest_cycle_limit) {
    std::vector<std::vector<BytesPerSecond>> capacity(members.size(), std::vector<BytesPerSecond>(members.size()));
    for (std::size_t a = 0; a < members.size(); ++a) {
      for (std::size_t b = 0; b < members.size(); ++b) {
        const LinkId link = local.direct_nvlink(impl_->place(members[a]).endpoint, impl_->place(members[b]).endpoint);
        if (link < 0 || used.contains(impl_->first_link(node) + link)) continue;
        capacity[a][b] = local.links[at_index(link)].bandwidth;
      }
    }
    std::vector<int> ring;
    for (const int member : widest_cycle(capacity)) ring.push_back(members[at_index(member)]);
    if (!ring.empty()) return ring;
  }

  std::ranges::sort(members, {}, [&](int rank) { return local.tree_position[at_index(impl_->place(rank).endpoint)]; });
  // Bridged pairs stay neighbours.
  const auto joined = [&](int a, int b) {
    return local.direct_nvlink(impl_->place(a).endpoint, impl_->place(b).endpoint) >= 0;
  };
  for (auto at = members.begin(); at != members.end(); ++at) {
    const auto partner = std::find_if(at + 1, members.end(), [&](int other) { return joined(*at, other); });
    if (partner != members.end()) std::rotate(at + 1, partner, partner + 1);
  }
  std::vector<LinkId> taken;
  for (std::size_t i = 0; i < members.size(); ++i) append_route(members[i], members[(i + 1) % members.size()], taken);
  const bool free = std::none_of(taken.begin(), taken.end(), [&](LinkId link) { return used.contains(link); });
  return free ? members : std::vector<int>{};
}

}  // namespace foretrain
