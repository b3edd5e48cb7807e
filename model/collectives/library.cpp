#include "model/collectives/library.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/collectives/network_effects.hpp"

namespace foretrain {

namespace {

// Up to 2.21 every call's work passed through a queue in host memory; 2.22 hands it over in the kernel's arguments
// (src/enqueue.cc, testBudget). The tables that launches were fitted on are of 2.1x and of 2.2x.
constexpr NcclVersion fast_launch_since{2, 22};
constexpr NcclVersion parallel_trees_since{2, 23};
constexpr NcclVersion forwarding_since{2, 12};
constexpr double parallel_trees_on = 6.0;  // compute capability
// LL of one node is limited by the instructions that check its flags, which is the GPU's, not the library's: NCCL's own
// model has a bandwidth for each generation (llMaxBws, src/graph/tuning.cc).
constexpr double fast_flags_on = 9.0;

Seconds microseconds(double value) { return Seconds(value * 1e-6); }

int rounds_of(CollectiveOperation operation) { return operation == CollectiveOperation::all_reduce ? 2 : 1; }

}  // namespace

CollectiveConstants library_constants(const Topology& topology, const Calibration& calibration) {
  if (!topology.nccl().none()) return calibration.collective;
  CollectiveConstants lossless;
  lossless.nvlink_efficiency = lossless.pcie_efficiency = lossless.network_efficiency = 1.0;
  lossless.nvls_efficiency = lossless.tree_efficiency = 1.0;
  lossless.peer_channel_gbps = 1e6;
  return lossless;
}

Library::Library(const CollectiveCall& call, const Topology& topology, const Calibration& calibration)
    : call_(call), topology_(topology), constants_(library_constants(topology, calibration)) {
  for (const std::vector<int>& group : call.groups) layouts_.push_back(lay_out(group, topology));
  find_slowest_parts();
  slowest_ = &*std::ranges::max_element(layouts_, {}, &GroupLayout::node_count);
  const std::vector<GroupLayout::NodePart>& nodes = slowest_->nodes;
  for (std::size_t k = 0; nodes.size() > 1 && k < nodes.size(); ++k) {
    hops_.push_back(topology.latency(nodes[k].ranks.front(), nodes[(k + 1) % nodes.size()].ranks.front()));
  }
}

/// Where nodes are of several kinds, all wait for the slowest.
void Library::find_slowest_parts() {
  int known = -1;
  for (const GroupLayout& layout : layouts_) {
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
  const double factor = slowest_->nvlink ? 1.0 : constants_.pcie_step_factor;
  // Over NVLink the instructions that check flags are the limit; elsewhere the flags' share of the bytes is.
  const bool inside_nvlink = slowest_->nvlink && slowest_->node_count() == 1;
  const double checked =
      compute_capability_ < fast_flags_on ? constants_.early_low_latency_share : constants_.low_latency_share;
  std::vector<LibraryProtocol> result = {{"LL", inside_nvlink ? checked : 8.0 / 16.0,
                                          microseconds(constants_.ll_step_us * factor), constants_.network_ll_step_us},
                                         simple()};
  // LL128 relies on NVLink storing 128 bytes at once: NCCL offers it on NVLink only.
  if (slowest_->nvlink) {
    result.push_back({"LL128", inside_nvlink ? constants_.ll128_share : 120.0 / 128.0,
                      microseconds(constants_.ll128_step_us), constants_.network_ll128_step_us});
  }
  return result;
}

LibraryProtocol Library::simple() const {
  const double factor = slowest_->nvlink ? 1.0 : constants_.pcie_step_factor;
  return {"Simple", 1.0, microseconds(constants_.simple_step_us * factor), constants_.network_simple_step_us};
}

Seconds Library::launch() const {
  return microseconds(version() < fast_launch_since && !version().none() ? constants_.early_launch_us
                                                                         : constants_.launch_us);
}

Seconds Library::set_up(int peers) const {
  constexpr int batch = 8;
  return microseconds(constants_.peer_us) * static_cast<double>(std::min(peers, batch - 1) + peers / batch);
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

double Library::levels() const { return std::ceil(std::log2(static_cast<double>(slowest_->node_count()))); }

Seconds Library::ring_latency(const LibraryProtocol& protocol) const {
  const int rounds = rounds_of(call_.operation);
  const int between = rounds * (slowest_->node_count() - 1);
  const int inside = rounds * (slowest_->ranks - 1) - between;
  std::vector<Seconds> steps;
  for (const Seconds hop : hops_) steps.push_back(network_step(protocol, protocol.step, hop));
  return protocol.step * static_cast<double>(inside) + (between > 0 ? longest_way(steps, between) : Seconds(0.0));
}

Seconds Library::local_copies() const {
  using enum CollectiveOperation;
  const bool own_part =
      call_.operation == all_reduce || call_.operation == all_gather || call_.operation == reduce_scatter;
  if (!own_part || memory_.value() <= 0.0 || slowest_->ranks < 2) return Seconds(0.0);
  return call_.size / static_cast<double>(slowest_->ranks) * constants_.local_copy_traffic / memory_ *
         static_cast<double>(rounds_of(call_.operation));
}

BytesPerSecond Library::peer_bandwidth(Bytes message) const {
  const double channels = std::max(32.0 / slowest_->ranks, message / 16.0_MiB);
  return BytesPerSecond(constants_.peer_channel_gbps * 1e9) * channels;
}

Bytes Library::in_switch_message() const {
  constexpr Bytes least(64 * 1024.0);
  const double chunks = call_.size / (least * (16.0 * slowest_->largest_node));
  return std::min(largest_message_, least * std::cbrt(std::max(chunks, 1e-3)));
}

bool Library::has_parallel_trees() const {
  const bool suits =
      call_.operation == CollectiveOperation::all_gather || call_.operation == CollectiveOperation::reduce_scatter;
  return suits && version() >= parallel_trees_since && compute_capability_ >= parallel_trees_on &&
         slowest_->largest_node == 1 && slowest_->node_count() > 1;
}

std::vector<Flow> forwarded_over_rails(std::vector<Flow> flows, const Topology& topology) {
  if (topology.nccl() < forwarding_since || topology.fabric_is_one_switch()) return flows;
  const auto over_nvlink = [&](EndpointId from, EndpointId to) {
    const std::vector<LinkId> links = topology.route(from, to).links;
    return std::ranges::all_of(links, [&](LinkId link) { return is_nvlink(topology.link_kind(link)); });
  };
  std::vector<Flow> result;
  result.reserve(flows.size());
  for (Flow& flow : flows) {
    const int node = topology.node_of(flow.source), other = topology.node_of(flow.destination);
    const bool crosses = node != other && topology.is_gpu(flow.source) && topology.is_gpu(flow.destination);
    const int on_rail = crosses ? topology.first_gpu(node) + flow.destination - topology.first_gpu(other) : -1;
    const bool forwards = crosses && on_rail < topology.gpus() && topology.node_of(on_rail) == node &&
                          topology.card_of_gpu(on_rail) == topology.card_of_gpu(flow.destination) &&
                          topology.card_of_gpu(flow.source) != topology.card_of_gpu(on_rail) &&
                          over_nvlink(flow.source, on_rail);
    if (forwards) {
      Flow inside = flow;
      inside.destination = on_rail;
      result.push_back(inside);
      flow.source = on_rail;
    }
    result.push_back(flow);
  }
  return result;
}

}  // namespace foretrain
