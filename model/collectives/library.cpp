#include "model/collectives/library.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/collectives/channels.hpp"
#include "model/collectives/collective.hpp"
#include "model/collectives/network_effects.hpp"

namespace foretrain {

namespace {

// Up to 2.21 every call's work passed through a queue in host memory; 2.22 hands it over in the kernel's arguments
// (src/enqueue.cc, testBudget). The tables that launches were fitted on are of 2.1x and of 2.2x.
constexpr NcclVersion fast_launch_since{2, 22};
constexpr NcclVersion parallel_trees_since{2, 23};
constexpr NcclVersion forwarding_since{2, 12};
constexpr double parallel_trees_on = 6.0;  // compute capability
constexpr double ampere = 8.0, hopper = 9.0, blackwell = 10.0;
// A channel's slots: LL's without flags, LL128's for 640 threads with 120 words each (src/include/device.h).
constexpr Bytes ll_slot(32.0 * 1024.0), ll128_slot(640.0 * 120.0 * 8.0);
constexpr Bytes switch_chunk(64.0 * 1024.0);
// Channels of reductions in switches, each with a chunk for every rank of a node: on Hopper, and on Blackwell inside a
// node and between nodes (NVLS_NCHANNELS_SM90, _SM100_NVL and _SM100, src/transport/nvls.cc).
constexpr double switch_channels = 16.0, blackwell_switch_channels = 24.0, blackwell_channels_between_nodes = 32.0;
constexpr Bytes ll_word(8.0), largest_ll_message(16 * 1024.0), piece(512 * 1024.0);
/// Peers that NCCL serves at a time, the own copy among them (NCCL_MAX_DEV_WORK_P2P_PER_BATCH, src/include/device.h).
constexpr int batch = 8;
constexpr double ll_threads = 512.0, message_channels = 32.0, pcie_channels = 2.0;
constexpr double hidden_slices = 1.0 / 2.0;  // one of two (SLICESTEPS of CHUNKSTEPS, src/include/collectives.h)
constexpr double idle_steps = 2.0 / 3.0;
constexpr double traffic_of_copy = 2.0;  // read once, written once

Seconds microseconds(double value) { return Seconds(value * 1e-6); }

int rounds_of(CollectiveOperation operation) { return operation == CollectiveOperation::all_reduce ? 2 : 1; }

/// Layouts of groups on a network: a sweep asks for collectives of many sizes among the same ones.
struct LayoutsKey {
  using Value = const std::vector<GroupLayout>;
  std::uint64_t network;  ///< the topology's serial number
  RankGroups groups;
  int ranks;  ///< as in CollectiveCall

  bool operator==(const LayoutsKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(network, groups.hash(), ranks); }
  [[nodiscard]] std::size_t bytes(const std::vector<GroupLayout>&) const {
    constexpr std::size_t of_rank = 100;  // its place, and in the rings of its node
    return groups.size() * groups.front().size() * of_rank;
  }
};

/// The calibration's, or what loses nothing where the cluster has no library.
CollectiveConstants library_constants(const Topology& topology, const Calibration& calibration) {
  if (!topology.nccl().none()) return calibration.collective;
  CollectiveConstants lossless;
  lossless.nvlink_efficiency = lossless.pcie_efficiency = lossless.network_efficiency = 1.0;
  lossless.nvls_efficiency = lossless.tree_efficiency = 1.0;
  lossless.peer_channel_gbps = lossless.message_gbps = 1e6;
  return lossless;
}

}  // namespace

Library::Library(const CollectiveCall& call, const Topology& topology, const Calibration& calibration)
    : call_(call), topology_(topology), constants_(library_constants(topology, calibration)), hosts_(calibration.host) {
  layouts_ = session().known(LayoutsKey{topology.serial(), call.groups, call.ranks}, [&] {
    std::vector<GroupLayout> layouts;
    for (const std::vector<int>& group : call.groups) layouts.push_back(lay_out(group, topology, call.ranks));
    return layouts;
  });
  find_slowest_parts();
  slowest_ = &*std::ranges::max_element(*layouts_, {}, &GroupLayout::node_count);
  // A channel copies a message into the switches' buffers and out again as fast as Hopper's, over links twice as fast.
  if (compute_capability_ >= blackwell && !version().none()) {
    constants_.nvls_efficiency *= blackwell_channels() / switch_channels / 2.0;
  }
  constants_.nvls_us *= hopper_share();  // by Simple's steps
  const std::vector<GroupLayout::NodePart>& nodes = slowest_->nodes;
  for (std::size_t k = 0; nodes.size() > 1 && k < nodes.size(); ++k) {
    hops_.push_back(topology.latency(nodes[k].ranks.front(), nodes[(k + 1) % nodes.size()].ranks.front()));
  }
}

/// If nodes are of several kinds, all wait for the slowest.
void Library::find_slowest_parts() {
  int known = -1;
  for (const GroupLayout& layout : *layouts_) {
    for (const GroupLayout::NodePart& part : layout.nodes) {
      const int node = topology_.node_of(part.ranks.front());
      const int group = topology_.group_of_node(node);
      if (group == std::exchange(known, group)) continue;
      const Gpu& gpu = topology_.gpu_model(node);
      compute_capability_ = std::min(compute_capability_, gpu.compute_capability);
      memory_ = std::min(memory_, gpu.memory_bandwidth);
      if (version().none()) continue;
      const CardMessages& messages = topology_.card_messages(node);
      card_step_ = std::max(card_step_, messages.step);
      largest_message_ = std::min(largest_message_, messages.largest);
    }
  }
}

std::vector<LibraryProtocol> Library::protocols() const {
  const auto step = [&](LibraryProtocolKind kind) {
    const ExpectedLatency& latency = expected_latencies[static_cast<std::size_t>(kind)];
    return tuning_step() * (slowest_->nvlink ? latency.nvlink_step : latency.pcie_step);
  };
  std::vector<LibraryProtocol> result = {
      {LibraryProtocolKind::ll, "LL", 8.0 / 16.0, step(LibraryProtocolKind::ll), constants_.network_ll_step_us},
      {LibraryProtocolKind::simple, "Simple", 1.0, step(LibraryProtocolKind::simple),
       constants_.network_simple_step_us}};
  if (slowest_->nvlink) {
    result.push_back({LibraryProtocolKind::ll128, "LL128", 120.0 / 128.0, step(LibraryProtocolKind::ll128),
                      constants_.network_ll128_step_us});
  }
  return result;
}

LibraryProtocol Library::simple() const { return protocols()[1]; }

bool Library::is_early() const { return version() < fast_launch_since && !version().none(); }

Seconds Library::tuning_step() const { return microseconds(constants_.tuning_step_us); }

Seconds Library::launch() const {
  return is_early() ? microseconds(constants_.early_launch_us) : microseconds(constants_.launch_us) * hopper_share();
}

double Library::hopper_share() const {
  return compute_capability_ >= hopper && compute_capability_ < blackwell ? constants_.hopper_share : 1.0;
}

RingCost Library::ring_in_node(Seconds links) const {
  using enum LibraryProtocolKind;
  if (version().none()) return {.protocol = "Simple", .latency = Seconds(0.0), .share = 1.0};
  RingCost best = ring_by(simple, links);
  if (expects_simple({ring_steps(), links, slowest_->nvlink, compute_capability_, tuning_step()})) return best;
  for (const LibraryProtocolKind kind : {ll, ll128}) {
    if (kind == ll128 && !slowest_->nvlink) continue;
    const RingCost cost = ring_by(kind, links);
    if (cost.latency + links / cost.share < best.latency + links / best.share) best = cost;
  }
  return best;
}

RingCost Library::ring_by(LibraryProtocolKind kind, Seconds links) const {
  using enum LibraryProtocolKind;
  const ExpectedGpu& gpu = expected_of(compute_capability_);
  // A protocol's share of Simple's bandwidth; kernels that check flags carry less than NVLinks do.
  const auto share = [&](double most, double expected) {
    return slowest_->nvlink ? std::min(most, expected * gpu.simple) : most;
  };
  const Seconds start = launch() + microseconds(constants_.start_us);
  const double own = has_own_part() ? 1.0 / ring_steps() : 0.0;
  if (kind == ll) {
    RingCost cost{"LL", launch() + step_in_node(ll) * number(ring_steps()),
                  share(0.5, gpu.ll * constants_.low_latency_share)};
    const double channels = slowest_->nvlink ? gpu.channels : pcie_channels;
    const double in_use = std::clamp(call_.size / (ll_word * (ll_threads * slowest_->ranks)), 1.0, channels);
    cost.latency += links / cost.share * ((1.0 + own) * channels / in_use - 1.0);
    return cost;
  }
  if (kind == ll128) {
    RingCost cost{"LL128", start + step_in_node(ll128) * number(ring_steps()),
                  share(0.92, gpu.ll128 * constants_.ll128_share)};
    cost.latency += links / cost.share * own;
    return cost;
  }
  const Seconds waiting = step_in_node(simple) * number(ring_steps());
  const Seconds once = step_in_node(simple) * (idle_share() * slowest_->ranks);
  return {"Simple", start + local_copies() + std::max(waiting - links * hidden_slices, once), 1.0};
}

double Library::idle_share() const {
  const bool idles = compute_capability_ >= ampere && compute_capability_ < blackwell;
  return slowest_->nvlink && idles ? idle_steps : 0.0;
}

Seconds Library::step_in_node(LibraryProtocolKind kind) const {
  using enum LibraryProtocolKind;
  const ExpectedLatency& expected = expected_latencies[static_cast<std::size_t>(kind)];
  const double over_nvlink = kind == ll      ? constants_.ll_step_us
                             : kind == ll128 ? constants_.ll128_step_us
                                             : constants_.simple_step_us * hopper_share();
  const double longer = slowest_->nvlink ? 0.0 : expected.pcie_step - expected.nvlink_step;
  return microseconds(over_nvlink) + tuning_step() * longer;
}

Seconds Library::set_up(int peers) const {
  const int turns = std::min(peers, batch - 1) + peers / batch;
  return microseconds(constants_.peer_us) * turns;
}

Seconds Library::exchange_between_nodes(Bytes message, int peers) const {
  if (is_early()) return set_up(peers);
  const double in_turn = std::max(peers - (batch - 1), 0) * std::min(1.0, message / piece);
  const int batches = peers / batch;
  return microseconds(constants_.peer_us) * std::max<double>(in_turn, batches);
}

Seconds Library::messages(Bytes size, int peers) const {
  const Seconds one_by_one = is_early() ? set_up(peers) : Seconds(0.0);
  if (size > largest_ll_message) return one_by_one + microseconds(constants_.start_us);
  return one_by_one + step_in_node(LibraryProtocolKind::ll) * std::log2(peers + 1.0) +
         size / BytesPerSecond(constants_.message_gbps * 1e9);
}

Seconds Library::exchange_in_node(Seconds links) const {
  // Others than NCCL send a token but once, straight into their peers' memory (DeepEP, HybridEP).
  if (version().none() || call_.tokens.dispatch != ExpertDispatch::all_to_all) return Seconds(0.0);
  const double channels = slowest_->nvlink ? message_channels : pcie_channels;
  const Bytes under_way = piece * channels;
  const double share = call_.size > under_way ? std::sqrt(under_way / call_.size) : 1.0;
  const Seconds copies = call_.size / static_cast<double>(slowest_->ranks) * traffic_of_copy / memory_;
  const Seconds beside = copies + links * (share * constants_.message_fill);
  if (!slowest_->nvlink) return beside;
  return std::max(beside, call_.size / BytesPerSecond(constants_.peer_channel_gbps * 1e9 * channels) - links);
}

Seconds Library::network_step(const LibraryProtocol& protocol, Seconds inside, Seconds latency) const {
  return std::max({microseconds(protocol.network_us), latency + inside, card_step_});
}

Seconds Library::longest_step(const LibraryProtocol& protocol, Seconds inside) const {
  return hops_.empty() ? Seconds(0.0) : network_step(protocol, inside, *std::ranges::max_element(hops_));
}

Seconds Library::tree_step(const LibraryProtocol& protocol, Seconds inside) const {
  if (hops_.empty()) return Seconds(0.0);
  const auto [shortest, longest] = std::ranges::minmax_element(hops_);
  const Seconds most = network_step(protocol, inside, *longest);
  if (*shortest == *longest) return most;
  return (network_step(protocol, inside, *shortest) * (levels() - 1.0) + most) / levels();
}

double Library::levels() const { return std::ceil(std::log2(static_cast<double>(slowest_->node_count))); }

int Library::ring_steps() const { return rounds_of(call_.operation) * (slowest_->ranks - 1); }

Seconds Library::ring_latency(const LibraryProtocol& protocol) const {
  const int between = rounds_of(call_.operation) * (slowest_->node_count - 1);
  const int inside = ring_steps() - between;
  std::vector<Seconds> steps;
  for (const Seconds hop : hops_) steps.push_back(network_step(protocol, protocol.step, hop));
  return protocol.step * static_cast<double>(inside) + (between > 0 ? longest_way(steps, between) : Seconds(0.0));
}

bool Library::has_own_part() const { return !has_root(call_.operation) && !is_exchange(call_.operation); }

Seconds Library::local_copies() const {
  if (!has_own_part() || memory_.value() <= 0.0 || slowest_->ranks < 2) return Seconds(0.0);
  return call_.size / static_cast<double>(slowest_->ranks) * constants_.local_copy_traffic / memory_;
}

BytesPerSecond Library::peer_bandwidth(Bytes message) const {
  const double channels = std::max(32.0 / slowest_->ranks, message / 16.0_MiB);
  return BytesPerSecond(constants_.peer_channel_gbps * 1e9) * channels;
}

double Library::blackwell_channels() const {
  return in_one_node() ? blackwell_switch_channels : blackwell_channels_between_nodes;
}

double Library::switch_lanes() const {
  return (compute_capability_ >= blackwell ? blackwell_channels() : switch_channels) * slowest_->largest_node;
}

Bytes Library::in_switch_message() const {
  const double chunks = call_.size / (switch_chunk * switch_lanes());
  return std::min(largest_message_, switch_chunk * std::cbrt(std::max(chunks, 1e-3)));
}

Bytes Library::pieces(LibraryProtocolKind kind) const {
  using enum LibraryProtocolKind;
  if (version().none()) return Bytes(0.0);
  const double channels = channels_of(call_.groups.front(), topology_);
  Bytes chunk = kind == simple ? tree_message : kind == ll128 ? ll128_slot : ll_slot;
  const double ranks = slowest_->largest_node, steps = 1.0 + std::floor(std::log2(slowest_->node_count)) + 0.1 * ranks;
  const bool halves = kind == ll128 && !has_root(call_.operation);
  const auto too_few = [&](double least) { return call_.size / (channels * chunk) < least * steps / ranks; };
  while (halves && too_few(64.0) && chunk > Bytes(128.0 * 1024.0)) chunk /= 2.0;
  while (halves && too_few(16.0) && chunk > Bytes(32.0 * 1024.0)) chunk /= 2.0;
  return std::min(channels * chunk, call_.size);
}

bool Library::expects_switches(Seconds links) const {
  const ExpectedRing ring{ring_steps(), links, slowest_->nvlink, compute_capability_, tuning_step()};
  return foretrain::expects_switches(ring, slowest_->ranks);
}

Bytes Library::switch_pieces() const {
  if (version().none()) return Bytes(0.0);
  const double lanes = switch_lanes();
  Bytes chunk = switch_chunk * 2.0;
  if (call_.size < chunk * (64.0 * lanes)) chunk = switch_chunk;
  if (call_.size < chunk * (8.0 * lanes)) chunk = switch_chunk / 2.0;
  if (call_.size < chunk * (2.0 * lanes)) chunk = switch_chunk / 4.0;
  return std::min(chunk * lanes, call_.size);
}

Bytes Library::switch_tree_pieces() const {
  if (version().none()) return Bytes(0.0);
  return std::min(switch_lanes() * switch_chunk, call_.size);
}

bool Library::has_parallel_trees() const {
  return has_parts(call_.operation) && version() >= parallel_trees_since && compute_capability_ >= parallel_trees_on &&
         slowest_->largest_node == 1 && slowest_->node_count > 1;
}

std::vector<Flow> forwarded_over_rails(std::vector<Flow> flows, const Topology& topology) {
  if (topology.nccl() < forwarding_since) return flows;
  const auto over_nvlink = [&](EndpointId from, EndpointId to) {
    const std::vector<LinkId> links = topology.route(from, to).links;
    return std::ranges::all_of(links, [&](LinkId link) { return is_nvlink(topology.link_kind(link)); });
  };
  std::vector<Flow> result;
  result.reserve(flows.size());
  bool any = false;
  for (Flow& flow : flows) {
    const int node = topology.node_of(flow.source), other = topology.node_of(flow.destination);
    const bool crosses = node != other && topology.is_gpu(flow.source) && topology.is_gpu(flow.destination);
    const int on_rail = crosses ? topology.first_gpu(node) + flow.destination - topology.first_gpu(other) : -1;
    const bool forwards = crosses && on_rail < topology.gpus() && topology.node_of(on_rail) == node &&
                          topology.card_of_gpu(on_rail) == topology.card_of_gpu(flow.destination) &&
                          topology.card_of_gpu(flow.source) != topology.card_of_gpu(on_rail) &&
                          over_nvlink(flow.source, on_rail);
    if (forwards) {
      any = true;
      Flow inside = flow;
      inside.destination = on_rail;
      result.push_back(inside);
      flow.source = on_rail;
    }
    result.push_back(flow);
  }
  // A rank that forwards for others has a connection for each of them.
  return any ? merge_by_ends(std::move(result), &Flow::beside) : result;
}

}  // namespace foretrain
