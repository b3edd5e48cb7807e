// The cost of NCCL's kernels on given hardware, for any schedule: launch, steps and protocols. One set
// for `auto` and for every named algorithm; what the links themselves lose is in traffic.hpp.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/collectives/collective.hpp"
#include "model/collectives/library_choice.hpp"
#include "model/collectives/traffic.hpp"

namespace foretrain {

struct LibraryProtocol {
  LibraryProtocolKind kind = LibraryProtocolKind::simple;
  const char* name = "";
  double share = 1.0;  ///< of the bandwidth
  Seconds step;        ///< inside a node, behind which steps between nodes go on
  double network_us = 0.0;
};

/// Cost of a ring inside a node under the protocol that NCCL chooses.
struct RingCost {
  const char* protocol = "";
  Seconds latency;     ///< all that is not its links' time
  double share = 1.0;  ///< of the bandwidth
};

class Library {
 public:
  Library(const CollectiveCall& call, const Topology& topology, const Calibration& calibration);

  [[nodiscard]] const CollectiveConstants& constants() const { return constants_; }
  [[nodiscard]] const HostConstants& hosts() const { return hosts_; }
  [[nodiscard]] const std::vector<GroupLayout>& layouts() const { return *layouts_; }
  /// The group on the most nodes.
  [[nodiscard]] const GroupLayout& slowest() const { return *slowest_; }
  [[nodiscard]] NcclVersion version() const { return topology_.nccl(); }

  /// Between nodes. Simple is the second one.
  [[nodiscard]] std::vector<LibraryProtocol> protocols() const;
  [[nodiscard]] LibraryProtocol simple() const;
  [[nodiscard]] Seconds launch() const;
  [[nodiscard]] bool in_one_node() const { return slowest_->node_count == 1; }
  /// The time of rings inside a node, in which the busiest link is busy for `links` under Simple: by Simple where NCCL
  /// expects that to be best (library_choice.hpp), else by the fastest. A rank's kernel has its own part to read or
  /// write beside those that it passes on, one part more than the steps.
  ///
  ///   LL      launch + steps · step + parts · part / (channels in use · a channel's rate)
  ///   LL128   launch + start + steps · step + parts · part / rate
  ///   Simple  launch + start + max(steps · step + ½ links, links + ranks · idle) + copies of the own part
  ///
  /// Simple passes a chunk on in two slices, of which the next rank waits for the first only: while steps decide, the
  /// other half of what links do is hidden. While links decide, those of Ampere and Hopper stand still for idle = 2/3
  /// of a step once for every rank, those of Volta and Blackwell not to be seen: modelling choice, from rings of 2 to
  /// 512 MB.
  ///
  /// A channel of LL joins for every 512 threads that have a word of eight bytes in each part: until all are in use, a
  /// step takes as long whatever the size. LL128 relies on NVLink storing 128 bytes at once: NCCL offers it there only.
  [[nodiscard]] RingCost ring_in_node(Seconds links) const;
  /// Over PCIe longer by what NCCL's own figures differ.
  [[nodiscard]] Seconds step_in_node(LibraryProtocolKind kind) const;
  /// Peers that one phase of a schedule sends to: the first seven cost a set-up each; further ones are served in
  /// batches of eight.
  [[nodiscard]] Seconds set_up(int peers) const;
  /// Time of an exchange with so many peers, some in other nodes, beyond the links' time and a step: before
  /// 2.21 set_up(). Since then eight are served at a time, the own copy among them, and of a message of a piece or more
  /// each further one waits for a set-up, of a smaller one for its part of it: modelling choice, from 7 to 39 peers.
  [[nodiscard]] Seconds exchange_between_nodes(Bytes message, int peers) const;
  /// Time of messages to so many peers inside a node beyond the links' time: by LL up to 16 KiB
  /// (NCCL_P2P_LL_THRESHOLD, src/enqueue.cc), with a step for every doubling of the ranks: modelling choice. Up to 2.21
  /// peers are set up one after the other.
  [[nodiscard]] Seconds messages(Bytes size, int peers) const;
  /// Time of an all-to-all inside a node beyond its start and the time of its links. Either these decide, with the
  /// own copy and the waiting of messages for each other. Messages come in pieces of 512 KiB over 32 channels (2 over
  /// PCIe) and meet at their receivers at random, so that waiting grows with the root of their number. Or the blocks of
  /// all channels do. Their warps are shared out among a rank's messages, the own copy among them, and move the whole
  /// buffer at their rate, however few ranks there are (src/device/sendrecv.h). `links`: how long the busiest link is
  /// busy.
  [[nodiscard]] Seconds exchange_in_node(Seconds links) const;
  /// Between nodes data and the news of its arrival travel the network once per step.
  [[nodiscard]] Seconds network_step(const LibraryProtocol& protocol, Seconds inside, Seconds latency) const;
  /// Over the longest hop between neighbouring nodes; zero on one node.
  [[nodiscard]] Seconds longest_step(const LibraryProtocol& protocol, Seconds inside) const;
  /// Mean step of a way up a tree: neighbours are close together, so that one level at most spans the longest hop.
  [[nodiscard]] Seconds tree_step(const LibraryProtocol& protocol, Seconds inside) const;
  /// Number of levels of a tree between the nodes.
  [[nodiscard]] double levels() const;
  /// All steps of rings through all ranks. A chunk crosses every hop but one in a round, the short ones among them.
  [[nodiscard]] Seconds ring_latency(const LibraryProtocol& protocol) const;
  [[nodiscard]] int ring_steps() const;
  /// A rank's own part passes through its memory without a link to hide behind; between nodes the network hides it.
  [[nodiscard]] Seconds local_copies() const;
  /// Bandwidth of one pair of point-to-point messages inside a node: 32 channels over the ranks of the communicator,
  /// more when each then still has 16 MiB to move (H100 send-receive sweeps with 4 and 8 ranks: 158, 80 GB/s up to 64
  /// MiB, doubling with the size from there on).
  [[nodiscard]] BytesPerSecond peer_bandwidth(Bytes message) const;

  /// Messages between nodes: of rings two slots of 512 KiB at a time (NCCL_BUFFSIZE: 4 MiB in eight;
  /// ALLREDUCE_SLICESTEPS; src/include/collectives.h), of trees one.
  static constexpr Bytes ring_message = 1.0_MiB, tree_message = 0.5_MiB;
  [[nodiscard]] Bytes largest_message() const { return largest_message_; }
  /// NCCL halves the chunks of its trees of switches until enough of them are under way, in all channels and one lane
  /// for each rank of a node: from 64 KiB on they double with every eightfold size (src/enqueue.cc, thresholds at 1, 4,
  /// 16 and 32 chunks a lane; here without the steps).
  [[nodiscard]] Bytes in_switch_message() const;
  /// Bytes under way at once in a tree, or a ring from or to one rank: in each channel a slot of the protocol's buffer
  /// (of LL half are flags), which NCCL halves in trees by LL128 until enough follow each other (src/enqueue.cc).
  [[nodiscard]] Bytes pieces(LibraryProtocolKind kind) const;
  /// NCCL expects reductions in a node's switches to be faster than its rings, whose links are busy for so long.
  [[nodiscard]] bool expects_switches(Seconds links) const;
  /// Bytes under way at once in a node's switches, a chunk in each lane, of 128 KiB at most: NCCL halves them until
  /// 64, then 8, then 2 follow each other (NVLS_CHUNKSIZE; src/enqueue.cc).
  [[nodiscard]] Bytes switch_pieces() const;
  /// The same of trees of switches over four nodes and more (NVLSTREE_MAX_CHUNKSIZE).
  [[nodiscard]] Bytes switch_tree_pieces() const;

  /// PAT is there: NCCL 2.23 and later, by default, over nodes of one rank each, on GPUs with 64-bit atomics (release
  /// notes of 2.23.4; ncclPatEnable, src/graph/tuning.cc).
  [[nodiscard]] bool has_parallel_trees() const;

 private:
  void find_slowest_parts();
  [[nodiscard]] bool has_own_part() const;
  [[nodiscard]] double blackwell_channels() const;
  [[nodiscard]] double switch_lanes() const;
  [[nodiscard]] bool is_early() const;
  [[nodiscard]] double hopper_share() const;
  [[nodiscard]] double idle_share() const;
  [[nodiscard]] Seconds tuning_step() const;
  [[nodiscard]] RingCost ring_by(LibraryProtocolKind kind, Seconds links) const;

  const CollectiveCall& call_;
  const Topology& topology_;
  CollectiveConstants constants_;
  const HostConstants& hosts_;
  std::shared_ptr<const std::vector<GroupLayout>> layouts_;
  const GroupLayout* slowest_ = nullptr;
  double compute_capability_ = 1000.0;  ///< of the oldest GPU
  BytesPerSecond memory_ = BytesPerSecond::infinity();
  Seconds card_step_;
  Bytes largest_message_ = Bytes::infinity();
  std::vector<Seconds> hops_;  ///< latency from each node to the next, round the ring; empty for one node
};

/// NCCL 2.12 and later sends a message between nodes through a GPU of the sender's node on the receiver's rail, reached
/// over NVLink (PXN; NCCL_P2P_PXN_LEVEL, src/graph/paths.cc). So messages need not change rails in the fabric.
std::vector<Flow> forwarded_over_rails(std::vector<Flow> flows, const Topology& topology);

/// lower() for SyncAlgorithm::automatic; the call has been checked.
LoweredCollective lower_automatic(const CollectiveCall& call, const Topology& topology, const Calibration& calibration);

/// A named algorithm that NCCL has, as `auto` would carry it out: its rings, the double binary trees between nodes,
/// sums in switches, messages between all pairs. Nothing where NCCL has none of that name for the call, or there is no
/// library: the schedule is the user's own then. Throws ImpossiblePlan where the name has none.
std::optional<LoweredCollective> lower_in_library(const CollectiveCall& call, const Topology& topology,
                                                  const Calibration& calibration);

/// Time of that with nothing else on the links, without the flows that it would be; headers of exchanges are
/// left out.
Seconds automatic_time(const CollectiveCall& call, const Topology& topology, const Calibration& calibration);

/// Adds to the phases of an algorithm that the library does not have, whose flows count payload and headers, what
/// `auto` counts for the library's own: links' shares, steps, launches, local copies. It is written with the library's
/// point-to-point messages: each phase is one group of calls, with a launch, the set-up of its peers, and Simple.
/// Without a library nothing is added.
void add_losses(std::vector<LoweredCollective::Phase>& phases, const CollectiveCall& call, const Topology& topology,
                const Calibration& calibration);

}  // namespace foretrain
