#include "model/collectives/traffic.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/collective.hpp"
#include "model/collectives/library.hpp"
#include "model/collectives/placement.hpp"

namespace foretrain {

namespace {

/// On a path, one thread block of the library serves both directions, so that each gets half of what a ring gets (eight
/// V100, first five: GPU 4 reaches the others only through GPU 0; 23 of 48 GB/s).
constexpr double chain_inflation = 2.0;

/// If a GPU reads from host memory, its read requests share the PCIe link with its writes. Kernels read and write
/// lines of 128 bytes, with 24 bytes around each write and in each request (PCI Express Base Specification: framing,
/// header of four words, checksum).
constexpr double beside_read_requests = (128.0 + 24.0) / (128.0 + 24.0 + 24.0);

/// Whether a GPU and the one `shift` further on have the same place in nodes of one kind.
bool is_same_place(int rank, int shift, const Topology& topology) {
  const int node = topology.node_of(rank), other = topology.node_of(rank + shift);
  return topology.kind_of_node(node) == topology.kind_of_node(other) &&
         topology.first_gpu(other) - topology.first_gpu(node) == shift;
}

/// A node's part, and what its links say of the whole layout.
GroupLayout::NodePart lay_out_node(std::vector<int> ranks, const Topology& topology, GroupLayout& layout) {
  std::vector<LinkId> links;
  for (std::size_t i = 0; ranks.size() > 1 && i < ranks.size(); ++i) {
    links.clear();
    topology.append_route(ranks[i], ranks[(i + 1) % ranks.size()], links);
    const bool switched = links.size() > 1;
    for (const LinkId link : links) {
      layout.nvlink = layout.nvlink && is_nvlink(topology.link_kind(link));
      layout.in_network = layout.in_network && switched && topology.in_network_reduction(link);
    }
  }
  std::vector<NodeRing> rings = node_rings(topology, ranks);
  return {std::move(ranks), std::move(rings)};
}

}  // namespace

GroupLayout::NodePart GroupLayout::NodePart::shifted(int by) const {
  NodePart other{foretrain::shifted(ranks, by), rings};
  for (NodeRing& ring : other.rings) ring.order = foretrain::shifted(std::move(ring.order), by);
  return other;
}

GroupLayout lay_out(const std::vector<int>& group, const Topology& topology, int ranks) {
  GroupLayout layout;
  layout.ranks = ranks > 0 ? ranks : static_cast<int>(group.size());
  layout.nvlink = true;
  layout.in_network = true;
  const RankGroups parts(split_by_node(group, topology));
  for (const RankGroups::Family& family : parts.families()) {
    const std::size_t first = layout.nodes.size();
    for (const int shift : family.shifts) {
      const bool known = layout.nodes.size() > first && is_same_place(family.first.front(), shift, topology);
      GroupLayout::NodePart part =
          known ? layout.nodes[first].shifted(shift) : lay_out_node(shifted(family.first, shift), topology, layout);
      layout.largest_node = std::max(layout.largest_node, static_cast<int>(part.ranks.size()));
      layout.in_network = layout.in_network && part.ranks.size() > 2;
      layout.nodes.push_back(std::move(part));
    }
  }
  layout.node_count = static_cast<int>(std::ssize(layout.nodes) * layout.ranks / std::ssize(group));
  layout.network_reduces = layout.nodes.size() > 1;
  if (layout.network_reduces) {
    std::vector<LinkId> links;
    topology.append_route(layout.nodes[0].ranks.front(), layout.nodes[1].ranks.front(), links);
    layout.network_reduces = std::ranges::all_of(links, [&](LinkId link) {
      return topology.link_kind(link) != LinkKind::network || topology.in_network_reduction(link);
    });
  }
  // Rings of a mesh may avoid the pairs that have no direct link; a single natural ring may not.
  const std::vector<NodeRing>& rings = layout.nodes.front().rings;
  layout.nvlink = layout.nvlink || rings.size() > 1 || rings.front().chain;
  return layout;
}

double TrafficBuilder::efficiency(EndpointId source, EndpointId destination, Engine engine) {
  if (topology_.nccl().none()) return 1.0;
  links_.clear();
  topology_.append_route(source, destination, links_);
  double nvlink = 1.0;
  bool only_nvlink = true, staged = false;
  for (const LinkId link : links_) {
    const LinkKind kind = topology_.link_kind(link);
    if (kind == LinkKind::network) {
      const double own = topology_.card_messages(topology_.node_of(source)).efficiency;
      return own > 0.0 ? own : constants_.network_efficiency;
    }
    only_nvlink = only_nvlink && is_nvlink(kind);
    staged = staged || kind == LinkKind::memory;
    const double own = topology_.collective_efficiency(link);
    nvlink = std::min(nvlink, own > 0.0 ? own : constants_.nvlink_efficiency);
  }
  staged = staged && topology_.is_gpu(source) && topology_.is_gpu(destination);
  if (!only_nvlink) return constants_.pcie_efficiency * (staged ? beside_read_requests : 1.0);
  return engine == Engine::switches ? constants_.nvls_efficiency : nvlink;
}

Flow TrafficBuilder::carried(Flow flow, Engine engine) {
  const double share = efficiency(flow.source, flow.destination, engine);
  flow.bytes /= share;
  const int node = topology_.node_of(flow.source);
  if (node == topology_.node_of(flow.destination)) return flow;
  flow.message = message_ / share;
  const Transport* tcp = topology_.nccl().none() || hosts_ == nullptr ? nullptr : topology_.tcp(node);
  if (tcp != nullptr) {
    const BytesPerSecond socket = std::min(BytesPerSecond(hosts_->pageable_copy_gbps * 1e9), tcp->flow_limit);
    flow.most_rate = socket * (tcp->streams * flow.weight * channel_share_ / share);
  }
  return flow;
}

/// A channel enters a node by one of the ranks at its card; here its bytes are spread over all of them.
void TrafficBuilder::share_channels(const std::vector<int>& ranks) {
  std::set<int> cards;
  for (const int rank : ranks) cards.insert(topology_.card_of_gpu(rank));
  channel_share_ = number(cards.size()) / number(ranks.size());
}

void TrafficBuilder::add(EndpointId source, EndpointId destination, double bytes, Engine engine) {
  flows_.push_back(carried({source, destination, Bytes(bytes)}, engine));
}

void TrafficBuilder::add(Way way, const GroupLayout& layout, CollectiveOperation operation) {
  if (way == Way::rings) return add_rings(layout, operation);
  if (way == Way::network_switches) return add_network_switches(layout, operation);
  way == Way::trees ? add_trees_in_nodes(layout) : add_to_switches(layout);
  add_tree_between_nodes(layout);
}

void TrafficBuilder::add_along(const NodeRing& ring, double bytes, bool both_ways) {
  const std::size_t length = ring.order.size(), hops = ring.chain || length < 2 ? length - 1 : length;
  for (std::size_t i = 0; i < hops; ++i) {
    const int from = ring.order[i], to = ring.order[(i + 1) % length];
    add(from, to, bytes);
    if (both_ways) add(to, from, bytes);
  }
}

void TrafficBuilder::add_rings(const GroupLayout& layout, CollectiveOperation operation) {
  const double per_hop = bus_bandwidth_factor(operation, layout.ranks);
  const int root = layout.nodes.front().ranks.front();
  const auto add_hop = [&](int from, int to, double share) {
    const bool skipped =
        has_root(operation) && (operation == CollectiveOperation::broadcast ? to == root : from == root);
    if (!skipped) add(from, to, per_hop * share);
  };
  for (std::size_t k = 0; k < layout.nodes.size(); ++k) {
    const GroupLayout::NodePart& here = layout.nodes[k];
    const GroupLayout::NodePart& next = layout.nodes[(k + 1) % layout.nodes.size()];
    for (std::size_t r = 0; r < here.rings.size(); ++r) {
      const NodeRing& ring = here.rings[r];
      const NodeRing& after = next.rings[r % next.rings.size()];
      const int length = static_cast<int>(ring.order.size());
      if (ring.chain) {
        // Half of a ring's bytes each way, over the path only.
        const double each_way = 0.5 * static_cast<double>(layout.ranks) / (layout.ranks - 1) * chain_inflation;
        for (int i = 0; i + 1 < length; ++i) {
          add_hop(ring.order[i], ring.order[i + 1], each_way);
          add_hop(ring.order[i + 1], ring.order[i], each_way);
        }
      } else {
        const double share = layout.nodes.size() == 1 ? 1.0 : static_cast<double>(length - 1) / length;
        for (int i = 0; length > 1 && i < length; ++i) {
          add_hop(ring.order[i], ring.order[(i + 1) % length], ring.share * share);
        }
      }
      if (layout.nodes.size() == 1) continue;
      // From one node to the next at the same place in their orders: the hop stays on one rail, as NCCL prefers.
      share_channels(ring.order);
      for (int place = 0; place < length; ++place) {
        add_hop(ring.order[place], after.order[place % after.order.size()], ring.share / length);
      }
    }
  }
}

void TrafficBuilder::add_trees_in_nodes(const GroupLayout& layout) {
  for (const GroupLayout::NodePart& part : layout.nodes) {
    for (const NodeRing& ring : part.rings) {
      const double length = number(ring.order.size());
      const double share = (ring.chain ? chain_inflation : (length - 1.0) / length) * ring.share;
      add_along(ring, share / constants_.tree_efficiency, true);
    }
  }
}

void TrafficBuilder::add_network_switches(const GroupLayout& layout, CollectiveOperation operation) {
  const bool reduces = operation == CollectiveOperation::all_reduce;
  if (reduces && layout.in_network) {
    add_to_switches(layout);
  } else {
    for (const GroupLayout::NodePart& part : layout.nodes) {
      for (const NodeRing& ring : part.rings) {
        const double length = number(ring.order.size());
        add_along({ring.order},
                  (reduces ? 2.0 : 1.0) * (length - 1.0) / length * ring.share * (ring.chain ? chain_inflation : 1.0),
                  false);
      }
    }
  }
  // Every card sends its ranks' shares up once and gets their sums once: a flow to the next node stands for both.
  for (std::size_t k = 0; k < layout.nodes.size(); ++k) {
    const std::vector<int>& here = layout.nodes[k].ranks;
    const std::vector<int>& next = layout.nodes[(k + 1) % layout.nodes.size()].ranks;
    for (std::size_t place = 0; place < here.size(); ++place) {
      add(here[place], next[place % next.size()], 1.0 / static_cast<double>(here.size()));
    }
  }
}

void TrafficBuilder::add_to_switches(const GroupLayout& layout) {
  for (const GroupLayout::NodePart& part : layout.nodes) {
    // A port carries the rank's own message once and, once more, the 1/n of the result that the rank multicasts.
    const std::vector<int>& order = part.rings.front().order;
    const double bytes = static_cast<double>(order.size() + 1) / static_cast<double>(order.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      add(order[i], order[(i + 1) % order.size()], bytes, Engine::switches);
  }
}

void TrafficBuilder::add_tree_between_nodes(const GroupLayout& layout) {
  // In a double binary tree an inner node sends the sum up and the result down twice, each for half of the message, and
  // is a leaf for the other half: two messages out, two in. Two nodes exchange one.
  const std::size_t nodes = layout.nodes.size();
  if (nodes < 2) return;
  for (std::size_t k = 0; k < (nodes == 2 ? 1 : nodes); ++k) {
    const std::vector<int>& here = layout.nodes[k].ranks;
    const std::vector<int>& next = layout.nodes[(k + 1) % nodes].ranks;
    share_channels(here);
    for (int rail = 0; rail < layout.largest_node; ++rail) {
      const int a = here[rail % here.size()];
      const int b = next[rail % next.size()];
      const double share = 1.0 / layout.largest_node / constants_.tree_efficiency;
      add(a, b, share);
      add(b, a, share);
    }
  }
}

void TrafficBuilder::add_send_receive(const std::vector<int>& group) {
  for (std::size_t i = 0; i < group.size(); ++i) add_messages({{group[i], group[(i + 1) % group.size()], Bytes(1.0)}});
}

void TrafficBuilder::add_exchange(std::vector<Flow> flows, Bytes size) {
  for (Flow& flow : flows) flow.bytes = Bytes(flow.bytes / size);
  add_messages(std::move(flows));
}

void TrafficBuilder::add_messages(std::vector<Flow> messages) {
  for (Flow& flow : forwarded_over_rails(std::move(messages), topology_)) flows_.push_back(carried(flow));
}

std::vector<Flow> TrafficBuilder::flows() { return merge_by_ends(std::exchange(flows_, {})); }

}  // namespace foretrain
