// The classical hierarchy: inside every group (machine) a chain adds up towards its first rank, the leaders all-reduce
// in a ring, and chains hand the result back. One rank per machine uses the network, for the whole message; groups may
// be of different sizes, which shares of the message for every rank do not allow. Source: Goyal et al., "Accurate,
// large minibatch SGD: training ImageNet in 1 hour" (2017), section 4.2 (with trees of leaders in place of the ring).
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "model/base/error.hpp"
#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

constexpr int leader_pieces_per_rank = 4;  // as in rings.cpp

struct Groups {
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
  Groups groups{{0}, 1};
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

/// Chains inside all groups. The longest one is busy throughout; shorter ones too, until their last piece has passed.
SchedulePart inside_part(const SharedGroups& groups, bool towards_leader) {
  return pipeline(groups->longest - 1, groups->pieces(), [=](int index) {
    Phase transfers;
    for (int group = 0; group < groups->count(); ++group) {
      append_chain(
          groups->size(group) - 1, groups->pieces(), index, towards_leader,
          [&](int place) { return groups->first[group] + place; },
          [&](int piece) { return Transfer{.first_chunk = piece * groups->count(), .chunks = groups->count()}; },
          transfers);
    }
    return transfers;
  });
}

SchedulePart leaders_ring(const SharedGroups& groups) {
  const int count = groups->count(), hops = count - 1;
  const auto phase = [=](int index) {
    Phase transfers;
    const auto kind = index < hops ? Transfer::Kind::reduce : Transfer::Kind::copy;
    append_ring_hop(
        count, index < hops ? index + 1 : index - hops, kind, [&](int group) { return groups->first[group]; },
        [&](int block) { return Transfer{.first_chunk = block, .chunks = groups->pieces(), .stride = count}; },
        transfers);
    return transfers;
  };
  return {2 * hops, phase, 0};
}

/// The message passes along the chain of leaders, piece by piece.
SchedulePart leaders_chain(const SharedGroups& groups, bool towards_root) {
  return pipeline(groups->count() - 1, groups->chunks(), [=](int index) {
    Phase transfers;
    append_chain(
        groups->count() - 1, groups->chunks(), index, towards_root, [&](int group) { return groups->first[group]; },
        [](int piece) { return Transfer{.first_chunk = piece}; }, transfers);
    return transfers;
  });
}

Schedule by_leaders(CollectiveOperation operation, int ranks, const ScheduleShape& shape) {
  const SharedGroups groups = make_groups(ranks, shape);
  std::vector<SchedulePart> parts;
  if (reduces(operation)) parts.push_back(inside_part(groups, true));
  parts.push_back(operation == all_reduce ? leaders_ring(groups) : leaders_chain(groups, operation == reduce));
  if (copies(operation)) parts.push_back(inside_part(groups, false));
  return joined(ranks, groups->chunks(), std::move(parts));
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
    .operations = {all_reduce, broadcast, reduce},
    .build = by_leaders,
    .shape = leader_shape,
    .order = ring_order,
};

}  // namespace foretrain
