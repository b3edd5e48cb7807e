// The traffic of a collective of one byte on the links if it is spread as NCCL spreads it, efficiency included.
#pragma once

#include <vector>

#include "model/collectives/collective.hpp"
#include "model/collectives/node_rings.hpp"

namespace foretrain {

constexpr bool is_nvlink(LinkKind kind) { return kind == LinkKind::nvlink || kind == LinkKind::nvswitch; }

/// One group of ranks as a collective sees it.
struct GroupLayout {
  struct NodePart {
    std::vector<int> ranks;
    std::vector<NodeRing> rings;
    [[nodiscard]] NodePart shifted(int by) const;
  };
  std::vector<NodePart> nodes;
  int ranks = 0, node_count = 0;  ///< in all, where those listed stand for more (CollectiveCall::ranks)
  int largest_node = 0;           ///< ranks on the node with the most
  bool nvlink = false;            ///< ranks of one node reach each other over NVLink alone
  bool in_network = false;        ///< and through switches that reduce
  bool network_reduces = false;   ///< the network's switches between its nodes do
};

/// Layout of a group that stands for one of `ranks` ranks; 0: the group is complete.
GroupLayout lay_out(const std::vector<int>& group, const Topology& topology, int ranks = 0);

/// Adds up flows of several groups, for a message of one byte. Bytes are inflated by what the links of each flow lose
/// against large copies, and flows between nodes know the messages into which they are cut.
class TrafficBuilder {
 public:
  /// `message` is the size of the messages into which data is cut between nodes. Without `hosts` sockets carry whatever
  /// the cards do.
  TrafficBuilder(const Topology& topology, const CollectiveConstants& constants, Bytes message = Bytes::infinity(),
                 const HostConstants* hosts = nullptr)
      : topology_(topology), constants_(constants), message_(message), hosts_(hosts) {}

  /// Ways in which NCCL carries a collective out. rings: through all ranks; on each node they enter at every rank in
  /// turn, so that all NICs are used; in a broadcast (reduce) nothing flows into (out of) the first rank. trees:
  /// between nodes, chains inside them, one byte up and one down. node_switches: reduction and multicast in the
  /// switches of a node; between nodes, trees. network_switches: reduction in the network's switches, a share of the
  /// message for each rank of a node; in the node's own inside it, or else between its ranks.
  enum class Way { rings, trees, node_switches, network_switches };
  void add(Way way, const GroupLayout& layout, CollectiveOperation operation);
  /// Every rank to the next.
  void add_send_receive(const std::vector<int>& group);
  /// The flows of an all-to-all of buffers of `size` (exchange.hpp), which have their messages' headers already.
  void add_exchange(std::vector<Flow> flows, Bytes size);
  /// One for each pair of ends. Leaves none.
  std::vector<Flow> flows();

  enum class Engine { kernels, switches };
  /// The flow as the library's kernels carry it. Over TCP its sockets limit it, whatever the cards carry: NCCL opens
  /// one for each channel unless set otherwise (NCCL_NSOCKS_PERTHREAD, NCCL_SOCKET_NTHREADS), over one card a ring is
  /// one channel, and one core copies what a socket sends and receives as fast as pageable memory: modelling choices.
  Flow carried(Flow flow, Engine engine = Engine::kernels);
  /// Share of the route's bandwidth of these in endless messages, its links' own figures before the general ones.
  double efficiency(EndpointId source, EndpointId destination, Engine engine = Engine::kernels);

 private:
  void add(EndpointId source, EndpointId destination, double bytes, Engine engine = Engine::kernels);
  /// From each rank of the order to the next: round it, unless it is a chain.
  void add_along(const NodeRing& ring, double bytes, bool both_ways);
  void add_rings(const GroupLayout& layout, CollectiveOperation operation);
  void add_trees_in_nodes(const GroupLayout& layout);
  void add_network_switches(const GroupLayout& layout, CollectiveOperation operation);
  void add_tree_between_nodes(const GroupLayout& layout);
  void add_to_switches(const GroupLayout& layout);
  void share_channels(const std::vector<int>& ranks);
  /// Point to point, of a message of one byte; forwarded over rails where the library does that.
  void add_messages(std::vector<Flow> messages);

  const Topology& topology_;
  const CollectiveConstants& constants_;
  Bytes message_;
  const HostConstants* hosts_;
  double channel_share_ = 1.0;  ///< of a channel, that a flow between nodes stands for
  std::vector<Flow> flows_;
  std::vector<LinkId> links_;  ///< scratch
};

}  // namespace foretrain
