#include "model/collectives/library_choice.hpp"

#include <algorithm>
#include <cmath>

#include "model/collectives/collective.hpp"

namespace foretrain {

namespace {

constexpr std::array<ExpectedGpu, 4> gpus = {
    {{7.0, 39.0 / 120.0, 20.0 / 20.0, 16.0, 20.0 / 23.5, 0.0, 0.0},
     {8.0, 87.7 / 240.0, 20.0 / 20.0, 16.0, 20.0 / 19.1, 0.0, 0.0},
     {9.0, 141.0 / 360.0, 36.7 / 30.0, 16.0, 20.0 / 20.8, 0.85, 60.0 / 360.0},
     {10.0, 2 * 141.0 / 720.0, 40.0 / 90.0, 24.0, 40.0 / 34.4, 0.74, 90.0 / 720.0}}};
constexpr double switch_latency = 25.0 / 0.6;  // in steps of LL, as the others

/// GB/s between two nodes and between more.
using ByNodes = std::array<double, 2>;

/// What NCCL expects of GPUs on several nodes, in the order of `gpus`: `inside`, what its search finds for their rings
/// over NVLink, and the most of a channel.
struct ExpectedChannels {
  double inside;
  ByNodes ring_ll128, tree, tree_ll128, switches;
};
constexpr std::array<ExpectedChannels, gpus.size()> channels_of_gpus = {
    {{120.0, {20.0, 20.0}, {18.5, 10.0}, {20.0, 20.0}, {18.5, 10.0}},
     {240.0, {20.0, 20.0}, {23.6, 17.8}, {20.0, 20.0}, {23.6, 17.8}},
     {360.0, {36.7, 36.7}, {41.4, 36.0}, {36.7, 29.0}, {57.7, 45.5}},
     {720.0, {73.4, 73.4}, {42.8, 24.0}, {31.67, 20.0}, {96.0, 43.1}}}};
constexpr ByNodes most_ll = {39.0, 20.4};

/// Microseconds: before the first step, of one inside a node over NVLink and over PCIe, of one between nodes.
struct ExpectedSteps {
  double base, nvlink, pcie, network;
};
constexpr std::array<ExpectedSteps, 3> ring_steps = {
    {{6.6, 1.0, 1.0, 2.7}, {14.0, 1.9, 2.5, 4.0}, {8.4, 3.4, 5.7, 14.0}}};
constexpr std::array<ExpectedSteps, 3> tree_steps = {
    {{6.8, 0.6, 1.0, 5.0}, {14.0, 1.25, 1.9, 8.5}, {8.4, 4.0, 4.0, 14.0}}};
constexpr ExpectedSteps switch_steps = {0.0, 25.0, 25.0, 14.0};
/// What is left of a tree's bandwidth, from 64 bytes on for each doubling.
constexpr std::array<std::array<double, 23>, 3> tree_shares = {
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};
constexpr double ring_plateau = 1.4, early_ring_plateau = 1.9, plateau_bytes = 64.0;

/// GB/s over each of the links (busbw).
double expected_rate(const ExpectedNetwork& network, LibraryAlgorithm algorithm, LibraryProtocolKind protocol) {
  using enum LibraryProtocolKind;
  const auto gpu = static_cast<std::size_t>(&expected_of(network.compute_capability) - gpus.data());
  const ExpectedChannels& most = channels_of_gpus[gpu];
  const std::size_t several = network.nodes > 2 ? 1 : 0;
  const double channels = network.channels, inside = most.inside;
  const double cards = network.rings / BytesPerSecond(1e9), rings = network.nvlink ? std::min(cards, inside) : cards;
  if (algorithm == LibraryAlgorithm::ring) {
    if (protocol == ll) return std::min(most_ll[several], rings / 2.0);
    return protocol == simple ? rings : std::min(rings * 0.92, channels * most.ring_ll128[several]);
  }
  // Over two nodes each of a tree's halves, and each way through switches, goes through the network once.
  const double both = several == 1 ? rings : cards * 2.0;
  if (algorithm == LibraryAlgorithm::node_switches) {
    const double heads = static_cast<double>(network.ranks) / network.nodes;
    const double summed = inside * gpus[gpu].switches * 2.0 * (heads - 1.0) / heads;
    return std::min({summed, both, heads * most.switches[several]});
  }
  const double tree = std::min(std::min(both, network.nvlink ? inside : rings) * 0.92, channels * most.tree[several]);
  if (protocol == ll) return std::min(tree / 3.8, most_ll[several]);
  return protocol == simple ? tree : std::min(tree * (120.0 / 128.0), channels * most.tree_ll128[several]);
}

/// What NCCL expects of rings.
class ExpectedTimes {
 public:
  explicit ExpectedTimes(const ExpectedRing& ring)
      : ring_(ring),
        gpu_(expected_of(ring.compute_capability)),
        links_(ring.links / (ring.nvlink ? gpu_.simple : 1.0)) {}

  [[nodiscard]] Seconds by(LibraryProtocolKind kind) const {
    // Half of what LL carries are flags; of LL128's 128 bytes eight are.
    const double ll = ring_.nvlink ? std::min(0.5, gpu_.ll) : 0.5, ll128 = std::min(0.92, gpu_.ll128);
    const ExpectedLatency& latency = expected_latencies[static_cast<std::size_t>(kind)];
    const double step = ring_.nvlink ? latency.nvlink_step : latency.pcie_step;
    const double share = kind == LibraryProtocolKind::ll ? ll : kind == LibraryProtocolKind::ll128 ? ll128 : 1.0;
    return ring_.unit * (latency.base + ring_.steps * step) + links_ / share;
  }

  /// Rings carry 2(n-1) parts of n over each link, switches all of them once.
  [[nodiscard]] Seconds in_switches(int ranks) const {
    const double share = gpu_.switches * std::min(1.0, gpu_.head * ranks);
    return ring_.unit * switch_latency + links_ * (static_cast<double>(ranks) / ring_.steps) / share;
  }

 private:
  const ExpectedRing& ring_;
  const ExpectedGpu& gpu_;
  Seconds links_;
};

}  // namespace

const ExpectedGpu& expected_of(double compute_capability) {
  const auto newer = std::ranges::upper_bound(gpus, compute_capability, {}, &ExpectedGpu::compute_capability);
  return newer == gpus.begin() ? gpus.front() : *(newer - 1);
}

bool expects_simple(const ExpectedRing& ring) {
  using enum LibraryProtocolKind;
  const ExpectedTimes expected(ring);
  return expected.by(simple) < expected.by(ll) && (!ring.nvlink || expected.by(simple) < expected.by(ll128));
}

bool expects_switches(const ExpectedRing& ring, int ranks) {
  using enum LibraryProtocolKind;
  if (expected_of(ring.compute_capability).switches <= 0.0) return false;
  const ExpectedTimes expected(ring);
  return expected.in_switches(ranks) < std::min({expected.by(simple), expected.by(ll), expected.by(ll128)});
}

Seconds expected_time(const ExpectedNetwork& network, LibraryAlgorithm algorithm, LibraryProtocolKind protocol) {
  const auto kind = static_cast<std::size_t>(protocol);
  const bool sums = network.operation == CollectiveOperation::all_reduce, rooted = has_root(network.operation);
  const bool tree = algorithm == LibraryAlgorithm::tree, ring = algorithm == LibraryAlgorithm::ring;
  const bool simple = protocol == LibraryProtocolKind::simple;
  const double rounds = sums ? 2.0 : 1.0, nodes = network.nodes;
  // A ring's bytes over each of its links.
  const Bytes carried = network.size * bus_bandwidth_factor(network.operation, network.ranks);
  double rate = expected_rate(network, algorithm, protocol);
  if (tree) {
    const double doublings = std::floor(std::log2(std::max(network.size / Bytes(64.0), 1.0)));
    rate *= doublings < 23.0 ? tree_shares[kind][static_cast<std::size_t>(doublings)] : 1.0;
  }
  const Seconds links = (tree ? network.size * 2.0 : carried) / BytesPerSecond(rate * 1e9);
  const ExpectedSteps& steps = tree ? tree_steps[kind] : ring ? ring_steps[kind] : switch_steps;
  const double alone = network.ranks == network.nodes ? tree_steps[kind].network : steps.network;
  const auto time = [&](double microseconds) { return network.unit * (microseconds / 0.6); };
  const Seconds between = time(alone) + network.card * (simple ? 2.0 : 1.0);
  const Seconds inside = time(network.nvlink ? steps.nvlink : steps.pcie);
  if (!ring) {
    const Seconds levels = between * (2.0 * std::floor(std::log2(nodes)));
    const double ways = tree ? 2.0 * std::floor(network.ranks / nodes - 1.0) : 1.0;
    return time(steps.base) + inside * ways + levels + links;
  }
  if (rooted) return time(steps.base) + time(steps.network) + links;
  Seconds latency = time(steps.base) + inside * (rounds * (network.ranks - nodes)) + between * (rounds * (nodes - 1.0));
  // NCCL counts bytes of a channel and rank here.
  const bool on_plateau =
      sums && simple && network.size / Bytes(1.0) >= plateau_bytes * network.channels * network.ranks;
  if (on_plateau) latency *= network.compute_capability < 8.0 ? early_ring_plateau : ring_plateau;
  return latency + links;
}

}  // namespace foretrain
