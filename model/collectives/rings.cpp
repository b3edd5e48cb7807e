// Rings and chains: one, two in opposite directions, each for half of the message, so that both directions of every
// full-duplex link are used; or several at once, one through every network card or over every set of NVLink lanes.
//
// Chunks travel round a ring, one hop per phase. Reduce-scatter: chunk c starts at rank c+1, collects one contribution
// per hop and is complete at rank c. All-gather: each rank passes on what it got last. All-reduce is one after the
// other: 2(n-1) phases of S/n. Broadcast and reduce use the ring, cut open at rank 0, as a chain through which the
// message travels in pieces. Every ring has its share of each part of the message. Sources: Patarasuk and Yuan,
// "Bandwidth optimal all-reduce algorithms", JPDC 69 (2009); NCCL's channels for several.
#include "model/collectives/rings.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <unordered_map>

#include "model/collectives/algorithm.hpp"
#include "model/collectives/exchange.hpp"
#include "model/collectives/traffic.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;
using RingList = std::vector<ScheduleShape::Ring>;

/// Pieces per rank: filling the chain then costs at most a quarter of the time that the message itself takes.
constexpr int pieces_per_rank = 4;

struct Rings {
  explicit Rings(RingList list) : rings(std::move(list)) {
    for (const ScheduleShape::Ring& ring : rings) {
      first.push_back(weight);
      weight += ring.weight;
    }
  }
  RingList rings;
  std::vector<int> first;  ///< chunk of each ring within a part
  int weight = 0;          ///< all rings' together
};

SchedulePart part_of_rings(int ranks, const std::shared_ptr<const Rings>& rings, Transfer::Kind kind) {
  const auto phase = [=](int index) {
    Phase transfers;
    transfers.reserve(rings->rings.size() * static_cast<std::size_t>(ranks));
    for (std::size_t r = 0; r < rings->rings.size(); ++r) {
      const auto& [order, weight] = rings->rings[r];
      const auto part = [&](int place) {
        return Transfer{.first_chunk = order[place] * rings->weight + rings->first[r], .chunks = weight};
      };
      append_ring_hop(
          ranks, kind == Transfer::Kind::reduce ? index + 1 : index, kind, [&](int place) { return order[place]; },
          part, transfers);
    }
    return transfers;
  };
  return {ranks - 1, phase, 0};
}

Schedule over_chains(int ranks, RingList list, bool towards_root) {
  for (auto& [order, weight] : list) std::ranges::rotate(order, std::ranges::find(order, 0));
  const auto rings = std::make_shared<const Rings>(std::move(list));
  const int hops = ranks - 1, pieces = pieces_per_rank * ranks;
  const auto phase = [=](int index) {
    Phase transfers;
    for (std::size_t r = 0; r < rings->rings.size(); ++r) {
      const auto& [order, weight] = rings->rings[r];
      const auto chunks = [&](int piece) {
        return Transfer{.first_chunk = pieces * rings->first[r] + piece * weight, .chunks = weight};
      };
      append_chain(
          hops, pieces, index, towards_root, [&](int place) { return order[place]; }, chunks, transfers);
    }
    return transfers;
  };
  return joined(ranks, pieces * rings->weight, {pipeline(hops, pieces, phase)});
}

Schedule over_rings(CollectiveOperation operation, int ranks, RingList list) {
  if (has_root(operation)) return over_chains(ranks, std::move(list), operation == reduce);
  const auto rings = std::make_shared<const Rings>(std::move(list));
  return reduced_then_copied(operation, ranks, ranks * rings->weight,
                             part_of_rings(ranks, rings, Transfer::Kind::reduce),
                             part_of_rings(ranks, rings, Transfer::Kind::copy));
}

/// The first `count` of rings of weights 1, 2, …, forward and backward, each begun a rank further on.
RingList rings_to_try(int ranks, int count) {
  RingList rings;
  for (int ring = 0; ring < count; ++ring) {
    std::vector<int> order(static_cast<std::size_t>(ranks));
    std::iota(order.begin(), order.end(), 0);
    if (ring % 2 == 1) std::ranges::reverse(order);
    std::ranges::rotate(order, order.begin() + ring % ranks);
    rings.push_back({std::move(order), ring + 1});
  }
  return rings;
}

Schedule one_ring(CollectiveOperation operation, int ranks, const ScheduleShape& /*shape*/) {
  if (is_exchange(operation)) return direct_exchange(operation, ranks);
  return over_rings(operation, ranks, rings_to_try(ranks, 1));
}

Schedule both_ways(CollectiveOperation operation, int ranks, const ScheduleShape& /*shape*/) {
  RingList rings = rings_to_try(ranks, 1);
  rings.push_back(rings.front());
  std::ranges::reverse(rings.back().order);
  return over_rings(operation, ranks, std::move(rings));
}

Schedule several_rings(CollectiveOperation operation, int ranks, const ScheduleShape& shape) {
  return over_rings(operation, ranks, shape.rings.empty() ? rings_to_try(ranks, shape.parts) : shape.rings);
}

ScheduleShape rings_of_hardware(const CollectiveCall& /*call*/, const std::vector<int>& group,
                                const Topology& topology) {
  ScheduleShape shape(1);
  shape.rings = multi_rings(group, topology);
  return shape;
}

/// A way through a node: it enters at place `entry` of the ring's order and leaves at the place before.
struct Door {
  int entry = 0;
  int exit_card = -1, entry_card = -1;
};

std::vector<Door> doors(const NodeRing& here, const NodeRing& next, const Topology& topology) {
  std::vector<Door> result;
  const auto length = here.order.size();
  for (std::size_t entry = 0; entry < length; ++entry) {
    const int exit = here.order[(entry + length - 1) % length];
    result.push_back({static_cast<int>(entry), topology.card_of_gpu(exit),
                      topology.card_of_gpu(next.order[entry % next.order.size()])});
  }
  return result;
}

/// Doors with all different exit cards and all different entry cards, one for each of `cards`; false when there are
/// none.
bool choose(const std::vector<Door>& all, const std::vector<int>& cards, std::set<int>& entered,
            std::vector<Door>& chosen) {
  if (chosen.size() == cards.size()) return true;
  for (const Door& door : all) {
    if (door.exit_card != cards[chosen.size()] || !entered.insert(door.entry_card).second) continue;
    chosen.push_back(door);
    if (choose(all, cards, entered, chosen)) return true;
    chosen.pop_back();
    entered.erase(door.entry_card);
  }
  return false;
}

std::vector<Door> one_per_card(const std::vector<Door>& all) {
  std::set<int> exits, entries, entered;
  for (const Door& door : all) {
    exits.insert(door.exit_card);
    entries.insert(door.entry_card);
  }
  std::vector<Door> chosen;
  // Many cards of which none is special would make the search long, and have one rank each anyway.
  if (exits.size() == all.size() || exits.size() != entries.size()) return all;
  const std::vector<int> cards(exits.begin(), exits.end());
  return choose(all, cards, entered, chosen) ? chosen : all;
}

/// Small whole numbers in the ratio of the shares.
std::vector<int> whole_weights(const std::vector<double>& shares) {
  constexpr int finest = 64;
  std::vector<int> weights(shares.size());
  for (int parts = 1; parts <= finest; ++parts) {
    bool exact = true;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      weights[i] = std::max(1, static_cast<int>(std::lround(shares[i] * parts)));
      exact = exact && std::abs(shares[i] * parts - weights[i]) < 0.01;
    }
    if (exact) break;
  }
  return weights;
}

}  // namespace

const Algorithm ring_algorithm = {
    .operations = {all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_receive},
    .build = one_ring,
    .order = ring_order,
    .all_to_all_of_many = all_to_all_at_once,
    .runs = Algorithm::Runs::rings,
};

const Algorithm bidirectional_ring_algorithm = {
    .operations = {all_reduce, all_gather, reduce_scatter, broadcast, reduce},
    .build = both_ways,
    .order = ring_order,
    .runs = Algorithm::Runs::rings,
};

const Algorithm multi_ring_algorithm = {
    .operations = {all_reduce, all_gather, reduce_scatter, broadcast, reduce},
    .build = several_rings,
    .shape = rings_of_hardware,
    .runs = Algorithm::Runs::rings,
};

std::vector<ScheduleShape::Ring> multi_rings(const std::vector<int>& group, const Topology& topology) {
  const GroupLayout layout = lay_out(group, topology);
  std::unordered_map<int, int> position;
  for (const int rank : group) position.emplace(rank, static_cast<int>(position.size()));

  const std::vector<NodeRing>& first = layout.nodes.front().rings;
  std::vector<std::vector<Door>> entries;
  std::vector<double> shares;
  int repetitions = 1;
  for (std::size_t r = 0; r < first.size(); ++r) {
    entries.push_back({{}});
    if (layout.node_count() > 1 && !first[r].chain) {
      const std::vector<NodeRing>& next = layout.nodes[1].rings;
      entries.back() = one_per_card(doors(first[r], next[r % next.size()], topology));
    }
    shares.push_back(first[r].share);
    repetitions = std::lcm(repetitions, static_cast<int>(entries.back().size()));
  }
  const std::vector<int> weights = whole_weights(shares);

  std::vector<ScheduleShape::Ring> rings;
  for (std::size_t r = 0; r < first.size(); ++r) {
    for (const Door& door : entries[r]) {
      ScheduleShape::Ring ring{{}, weights[r] * repetitions / static_cast<int>(entries[r].size())};
      ring.order.reserve(group.size());
      for (const GroupLayout::NodePart& node : layout.nodes) {
        const std::vector<int>& order = node.rings[r % node.rings.size()].order;
        for (std::size_t i = 0; i < order.size(); ++i) {
          ring.order.push_back(position.at(order[(static_cast<std::size_t>(door.entry) + i) % order.size()]));
        }
      }
      rings.push_back(std::move(ring));
    }
  }
  return rings;
}

}  // namespace foretrain
