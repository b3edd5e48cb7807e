// The classical hierarchy: inside every group (machine) a chain adds up towards its first rank, the leaders all-reduce
// in a ring, and chains hand the result back. One rank per machine uses the network, for the whole message; groups may
// be of different sizes, which shares of the message for every rank do not allow. Source: Goyal et al., "Accurate,
// large minibatch SGD: training ImageNet in 1 hour" (2017), section 4.2 (with trees of leaders in place of the ring).
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "model/base/error.hpp"
#include "model/collectives/algorithm.hpp"
#include "model/collectives/rings.hpp"

namespace foretrain {

namespace {

constexpr int leader_pieces_per_rank = 4;  // as in chains_broadcast

struct Groups {
  int ranks = 0;
  std::vector<int> first;  ///< leaders; and the number of ranks
  int longest = 1;

  [[nodiscard]] int count() const { return static_cast<int>(first.size()) - 1; }
  [[nodiscard]] int size(int group) const { return first[group + 1] - first[group]; }
  [[nodiscard]] int pieces() const { return leader_pieces_per_rank * longest; }
  /// A piece of the chains is one chunk for every leader, a chunk of the leaders' ring one chunk of every piece.
  [[nodiscard]] int chunks() const { return pieces() * count(); }
};
using SharedGroups = std::shared_ptr<const Groups>;

SharedGroups make_groups(int ranks, const ScheduleShape& shape) {
  Groups groups{ranks, {0}, 1};
  std::vector<int> sizes = shape.groups;
  if (sizes.empty()) {
    if (shape.parts < 1) throw ImpossiblePlan("hierarchical_leader: groups of at least one rank are needed");
    for (int left = ranks; left > 0; left -= shape.parts) sizes.push_back(std::min(left, shape.parts));
  }
  for (const int size : sizes) {
    groups.first.push_back(groups.first.back() + size);
    groups.longest = std::max(groups.longest, size);
  }
  if (groups.first.back() != ranks || *std::min_element(sizes.begin(), sizes.end()) < 1) {
    throw ImpossiblePlan(
        fmt::format("hierarchical_leader: groups of {} ranks are not the {} ranks", fmt::join(sizes, " + "), ranks));
  }
  return std::make_shared<const Groups>(std::move(groups));
}

/// Chains inside all groups: hop h works on piece k in phase h + k.
Phase inside(const Groups& groups, int index, bool towards_leader) {
  Phase transfers;
  const int pieces = groups.pieces();
  for (int group = 0; group < groups.count(); ++group) {
    const int leader = groups.first[group];
    const int hops = groups.size(group) - 1;
    visit_hops(hops, pieces, index, [&](int hop, int piece) {
      const int from = towards_leader ? leader + hops - hop : leader + hop;
      const int to = towards_leader ? from - 1 : from + 1;
      transfers.push_back({from, to, piece * groups.count(), groups.count(),
                           towards_leader ? Transfer::Kind::reduce : Transfer::Kind::copy});
    });
  }
  return transfers;
}

/// One hop of the leaders' ring.
Phase ring_hop(const Groups& groups, int lag, Transfer::Kind kind) {
  Phase transfers;
  const int count = groups.count();
  for (int group = 0; group < count; ++group) {
    const int block = (group - lag % count + count) % count;
    transfers.push_back({groups.first[group], groups.first[(group + 1) % count], block, groups.pieces(), kind, count});
  }
  return transfers;
}

/// The message passes along the chain of leaders, piece by piece.
Phase chain_hop(const Groups& groups, int index, bool towards_root) {
  Phase transfers;
  const int hops = groups.count() - 1;
  visit_hops(hops, groups.chunks(), index, [&](int hop, int piece) {
    const int from = towards_root ? hops - hop : hop;
    const int to = towards_root ? from - 1 : from + 1;
    transfers.push_back(
        {groups.first[from], groups.first[to], piece, 1, towards_root ? Transfer::Kind::reduce : Transfer::Kind::copy});
  });
  return transfers;
}

SchedulePart inside_part(const SharedGroups& groups, bool towards_leader) {
  // The longest chain is busy throughout; shorter ones too, until their last piece has passed.
  return pipeline(groups->longest - 1, groups->pieces(),
                  [=](int index) { return inside(*groups, index, towards_leader); });
}

SchedulePart ring_part(const SharedGroups& groups) {
  const int hops = groups->count() - 1;
  const auto phase = [=](int index) {
    return index < hops ? ring_hop(*groups, index + 1, Transfer::Kind::reduce)
                        : ring_hop(*groups, index - hops, Transfer::Kind::copy);
  };
  return {2 * hops, phase, 0};
}

SchedulePart chain_part(const SharedGroups& groups, bool towards_root) {
  return pipeline(groups->count() - 1, groups->chunks(),
                  [=](int index) { return chain_hop(*groups, index, towards_root); });
}

Schedule join(const SharedGroups& groups, std::vector<SchedulePart> parts) {
  return joined(groups->ranks, groups->chunks(), std::move(parts));
}

ScheduleShape leader_shape(const CollectiveCall& /*call*/, const std::vector<int>& group, const Topology& topology) {
  ScheduleShape shape(1);
  for (const std::vector<int>& ranks : split_by_node(group, topology)) {
    shape.groups.push_back(static_cast<int>(ranks.size()));
  }
  return shape;
}

}  // namespace

const Algorithm hierarchical_leader_algorithm = {
    .all_reduce =
        [](int ranks, const ScheduleShape& shape) {
          const SharedGroups groups = make_groups(ranks, shape);
          return join(groups, {inside_part(groups, true), ring_part(groups), inside_part(groups, false)});
        },
    .broadcast =
        [](int ranks, const ScheduleShape& shape) {
          const SharedGroups groups = make_groups(ranks, shape);
          return join(groups, {chain_part(groups, false), inside_part(groups, false)});
        },
    .reduce =
        [](int ranks, const ScheduleShape& shape) {
          const SharedGroups groups = make_groups(ranks, shape);
          return join(groups, {inside_part(groups, true), chain_part(groups, true)});
        },
    .shape = leader_shape,
    .order = ring_order,
};

}  // namespace foretrain
