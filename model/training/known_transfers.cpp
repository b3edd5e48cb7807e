#include "model/training/known_transfers.hpp"

#include <algorithm>

#include "model/base/hash.hpp"
#include "model/base/memo.hpp"
#include "model/base/number.hpp"
#include "model/collectives/channels.hpp"

namespace foretrain {

namespace {

/// A network of nodes that are alike: the routes inside a node and between two of them, and which links are equally
/// wide. Empty for others.
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

std::optional<std::uint64_t> flow_pattern(const std::vector<Step::Transfer::Part>& parts, const Topology& topology) {
  std::uint64_t hash = fnv_1a_start;
  const auto add = [&hash](std::uint64_t number) { hash = summable_hash(hash ^ number); };
  std::map<std::tuple<Bytes, double, Bytes>, std::uint64_t> sizes;  // and weights, and messages
  for (const Step::Transfer::Part& part : parts) {
    add(fnv_1a(part.lowered.chosen_algorithm));
    add(part.lowered.phases.size());
    for (const LoweredCollective::Phase& phase : part.lowered.phases) {
      add(phase.flows.size());
      for (const Flow& flow : phase.flows) {
        if (!topology.is_gpu(flow.source) || !topology.is_gpu(flow.destination)) return std::nullopt;
        add(static_cast<std::uint64_t>(flow.source) << 32U | static_cast<std::uint64_t>(flow.destination));
        const std::tuple size{flow.bytes, flow.weight, flow.message};
        add(flow.bytes > Bytes(0.0) ? 1 + sizes.try_emplace(size, sizes.size()).first->second : 0);
      }
    }
  }
  return hash;
}

std::size_t flows_of(const std::vector<Step::Transfer::Part>& parts) {
  std::size_t flows = 0;
  for (const Step::Transfer::Part& part : parts) {
    for (const LoweredCollective::Phase& phase : part.lowered.phases) flows += phase.flows.size();
  }
  return flows;
}

/// How the group lies: how many ranks, on which kinds of nodes, which of them share a node, and how far each is from
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

struct Place {
  std::uint64_t network;
  RankLayout layout;
  CollectiveConstants constants;
  bool operator==(const Place&) const = default;
};

constexpr std::size_t most_layouts = 16;
using Places = Memo<Place, std::shared_ptr<KnownTransfers>>;

Places& places() {
  static thread_local Places memo(most_layouts);
  return memo;
}

thread_local std::size_t flows_known = 0;  ///< of all layouts

using Divisions = Memo<KnownTransfers::Shape, KnownTransfers::Division>;

Divisions& divisions() {
  constexpr std::size_t most_ranks = 500'000;  // in all; 10 MB
  static thread_local Divisions memo(most_ranks);
  return memo;
}

}  // namespace

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

std::shared_ptr<KnownTransfers> KnownTransfers::on(const Topology& topology, const RankLayout& layout,
                                                   const CollectiveConstants& constants) {
  Place place{topology.serial(), layout, constants};
  if (const auto* known = places().find(place)) return *known;
  return places().add(std::move(place), std::make_shared<KnownTransfers>(topology, layout));
}

KnownTransfers::KnownTransfers(const Topology& topology, const RankLayout& layout)
    : layout_(layout), network_(network_pattern(topology)) {}

KnownTransfers::~KnownTransfers() { flows_known -= flows_; }

const KnownTransfers::Transfer* KnownTransfers::find(const Key& key) const {
  const auto known = transfers_.find(key);
  return known == transfers_.end() ? nullptr : &known->second;
}

const KnownTransfers::Transfer& KnownTransfers::add(const Key& key,
                                                    const std::function<std::vector<Step::Transfer::Part>()>& lower,
                                                    const Topology& topology) {
  const Reading reading;
  std::vector<Step::Transfer::Part> parts = lower();
  constexpr std::size_t most_flows = 8'000'000;  // 130 MB: a few dozen steps of 16,384 GPUs
  if (flows_known > most_flows) {
    transfers_.clear();
    flows_known -= std::exchange(flows_, 0);
    places() = Places(most_layouts);  // the others', too
  }
  const std::size_t more = flows_of(parts);
  flows_ += more;
  flows_known += more;
  const std::optional<std::uint64_t> pattern = flow_pattern(parts, topology);
  return transfers_.insert_or_assign(key, Transfer{std::move(parts), pattern, reads_so_far()}).first->second;
}

const KnownTransfers::Groups& KnownTransfers::groups(GroupKind kind, int stage, const Topology& topology) {
  const auto [known, is_new] = groups_.try_emplace({kind, stage});
  if (is_new) {
    known->second.ranks = layout_.groups(kind, stage);
    const RankGroups& ranks = known->second.ranks;
    if (!ranks.empty()) known->second.channel_share = channel_share(ranks.front(), topology);
    known->second.alike = alike_groups(ranks, topology);
  }
  return known->second;
}

std::optional<KnownTransfers::Shape> KnownTransfers::shape(std::vector<std::uint64_t> step) const {
  if (network_.empty()) return std::nullopt;
  return Shape{layout_, network_, std::move(step)};
}

const KnownTransfers::Division* KnownTransfers::division_of(const Shape& shape) { return divisions().find(shape); }

void KnownTransfers::note_division(Shape shape, Division division) {
  const std::size_t weight = 1000 + division.classes.lane_of_rank.size();
  divisions().add(std::move(shape), std::move(division), weight);
}

}  // namespace foretrain
