#include "model/training/transfers/known_transfers.hpp"

#include <algorithm>

#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/collectives/channels.hpp"

namespace foretrain {

namespace {

/// Pattern of a network of equal nodes; empty for others.
std::vector<std::int64_t> network_pattern(const Topology& topology) {
  if (!topology.nodes_are_alike() || topology.limits_connections()) return {};
  const int gpus = topology.gpus_per_node();
  std::vector<std::int64_t> pattern{topology.nodes(), gpus, topology.links_per_node()};
  std::vector<LinkId> links;
  for (int source = 0; source < gpus; ++source) {
    for (int destination = 0; destination < gpus * std::min(2, topology.nodes()); ++destination) {
      links.clear();
      if (source != destination) topology.append_route(source, destination, links);
      pattern.push_back(std::ssize(links));
      pattern.insert(pattern.end(), links.begin(), links.end());
    }
  }
  std::map<BytesPerSecond, std::int64_t> widths;
  for (LinkId link = 0; link < topology.links_per_node(); ++link) {
    pattern.push_back(widths.try_emplace(topology.link_bandwidth(link), std::ssize(widths)).first->second);
  }
  return pattern;
}

/// The flows' ends, which of them are equally large and heavy, and their algorithms.
struct PatternKey {
  using Value = const std::uint64_t;  ///< its number, which no other pattern has
  std::vector<std::int32_t> pattern;

  bool operator==(const PatternKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(pattern); }
  [[nodiscard]] std::size_t bytes(std::uint64_t) const {
    return sizeof(PatternKey) + pattern.size() * sizeof(pattern.front());
  }
};

std::optional<std::uint64_t> flow_pattern(const std::vector<Step::Transfer::Part>& parts, const Topology& topology) {
  std::vector<std::int32_t> pattern;
  const auto add = [&pattern](std::integral auto number) { pattern.push_back(static_cast<std::int32_t>(number)); };
  std::map<std::tuple<Bytes, double, Bytes>, std::int32_t> sizes;  // and weights, and messages
  for (const Step::Transfer::Part& part : parts) {
    add(part.lowered.chosen_algorithm.size());
    std::ranges::for_each(part.lowered.chosen_algorithm, add);
    add(part.lowered.phases.size());
    for (const LoweredCollective::Phase& phase : part.lowered.phases) {
      add(phase.flows.size());
      for (const Flow& flow : phase.flows) {
        if (!topology.is_gpu(flow.source) || !topology.is_gpu(flow.destination)) return std::nullopt;
        add(flow.source);
        add(flow.destination);
        const std::tuple size{flow.bytes, flow.weight, flow.message};
        add(flow.bytes > Bytes(0.0) ? 1 + sizes.try_emplace(size, std::ssize(sizes)).first->second : 0);
      }
    }
  }
  return *session().known(PatternKey{std::move(pattern)}, [] { return session().new_number(); });
}

std::size_t flows_of(const std::vector<Step::Transfer::Part>& parts) {
  std::size_t flows = 0;
  for (const Step::Transfer::Part& part : parts) {
    for (const LoweredCollective::Phase& phase : part.lowered.phases) flows += phase.flows.size();
  }
  return flows;
}

/// Placement of the group: number of ranks, kinds of nodes, ranks that share a node, and the distance of each from
/// the next.
std::vector<double> placement_of(const std::vector<int>& group, const Topology& topology) {
  std::vector<double> shape{static_cast<double>(group.size())};
  std::map<int, int> nodes;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const int next = group[(i + 1) % group.size()];
    const int node = topology.node_of(group[i]);
    shape.push_back(nodes.try_emplace(node, static_cast<int>(nodes.size())).first->second);
    shape.push_back(topology.group_of_node(node));
    shape.push_back(group[i] == next ? 0.0 : topology.latency(group[i], next).value());
  }
  return shape;
}

/// A layout on a network, by the library's constants, beside background traffic.
struct PlaceKey {
  using Value = KnownTransfers;  ///< which learns more
  std::uint64_t network;         ///< the topology's serial number, which no other has
  RankLayout layout;
  int data;  ///< replicas that it stands for
  CollectiveConstants constants;
  std::vector<std::tuple<EndpointId, EndpointId, BytesPerSecond>> background;

  bool operator==(const PlaceKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(network, layout.hash(), data); }
  [[nodiscard]] std::size_t bytes(const KnownTransfers& known) const { return known.expected_bytes(); }
};

struct LoweredKey {
  using Value = const KnownTransfers::Transfer;
  std::uint64_t place;  ///< the number of its KnownTransfers
  TransferKey key;

  bool operator==(const LoweredKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(place, key.hash()); }
  [[nodiscard]] std::size_t bytes(const KnownTransfers::Transfer& transfer) const {
    return 1000 + transfer.flows * sizeof(Flow);
  }
};

std::vector<std::vector<int>> alike_groups(const RankGroups& groups, const Topology& topology) {
  std::vector<std::vector<int>> alike;
  std::map<std::vector<double>, std::size_t> placements;
  for (const RankGroups::Family& family : groups.families()) {
    const std::vector<double> of_first = placement_of(family.first, topology);
    for (std::size_t i = 0; i < family.shifts.size(); ++i) {
      const int shift = family.shifts[i];
      const auto [place, is_first] = placements.try_emplace(
          topology.repeats_after(shift) ? of_first : placement_of(shifted(family.first, shift), topology),
          alike.size());
      if (is_first) alike.emplace_back();
      alike[place->second].push_back(static_cast<int>(family.position + i));
    }
  }
  return alike;
}

}  // namespace

std::shared_ptr<KnownTransfers> KnownTransfers::of(const Scenario& scenario, const Topology& topology,
                                                   const RankLayout& layout) {
  PlaceKey key{topology.serial(), layout, scenario.plan.data, scenario.calibration.collective, {}};
  for (const Flow& flow : background_flows(scenario.background, topology)) {
    key.background.emplace_back(flow.source, flow.destination, flow.most_rate);
  }
  const bool undisturbed = key.background.empty();
  return session().known(key, [&] { return KnownTransfers(topology, key.layout, undisturbed); });
}

KnownTransfers::KnownTransfers(const Topology& topology, const RankLayout& layout, bool undisturbed)
    : layout_(layout),
      whole_(RankClasses::one_per_stage(layout.gpus() / layout.ranks_per_stage(), layout.stage_of_gpu())),
      undisturbed_(undisturbed),
      network_(undisturbed ? network_pattern(topology) : std::vector<std::int64_t>()),
      number_(session().new_number()) {}

std::size_t KnownTransfers::expected_bytes() const { return 200 * at_index(layout_.gpus()); }

KnownTransfers::Transfer::Transfer(std::vector<Step::Transfer::Part> own, const Topology& topology)
    : parts(std::move(own)), pattern(flow_pattern(parts, topology)), flows(flows_of(parts)) {}

KnownTransfers::Transfer KnownTransfers::Transfer::shifted(int ranks) const {
  Transfer other = *this;
  for (Step::Transfer::Part& part : other.parts) part.lowered = part.lowered.shifted(ranks);
  other.shift += ranks;
  return other;
}

std::shared_ptr<const KnownTransfers::Transfer> KnownTransfers::transfer(const TransferKey& key,
                                                                         const std::function<Transfer()>& lower) const {
  auto known = session().known(LoweredKey{number_, key}, [&] {
    const ReadScope reading;
    Transfer transfer = lower();
    transfer.reads = reads_so_far();
    return transfer;
  });
  note_reads(known->reads);
  return known;
}

const KnownTransfers::Groups& KnownTransfers::groups(GroupKind kind, int stage, const Topology& topology) {
  const auto [known, is_new] = groups_.try_emplace({kind, stage}, Groups{kind, stage, {}, {}, 1.0, stage, 0});
  Groups& groups = known->second;
  if (!is_new) return groups;
  groups.ranks = layout_.groups(kind, stage);
  for (int other = 0; undisturbed_ && other < stage; ++other) {
    const Groups& model = this->groups(kind, other, topology);
    if (model.model_stage != other) continue;
    const std::optional<int> shift = groups.ranks.shift_from(model.ranks);
    if (!shift || !topology.repeats_after(*shift)) continue;
    groups.model_stage = other;
    groups.shift = *shift;
    groups.alike = model.alike;
    groups.channel_share = model.channel_share;
    return groups;
  }
  if (!groups.ranks.empty()) groups.channel_share = channel_share(groups.ranks.front(), topology);
  groups.alike = alike_groups(groups.ranks, topology);
  return groups;
}

}  // namespace foretrain
