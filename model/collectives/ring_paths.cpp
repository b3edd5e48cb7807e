#include "model/collectives/ring_paths.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <unordered_map>

#include "model/collectives/traffic.hpp"

namespace foretrain {

namespace {

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
