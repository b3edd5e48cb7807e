// Which transfers may meet others, and which lanes wait for each other inside layers.
#include <algorithm>
#include <numeric>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/contention.hpp"
#include "model/training/transfers/transfer_table.hpp"

namespace foretrain {

std::vector<std::vector<int>> TransferTable::companions(std::size_t lanes) const {
  std::vector<int> first(lanes);  // of those known to be together
  std::iota(first.begin(), first.end(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      if (!is_inside_layers(groupings_[at_index(entries_[i].grouping)].kind)) continue;
      for (const Step::Transfer::Part& part : transfers_[i].parts) {
        int least = first[at_index(part.lanes.front())];
        for (const int lane : part.lanes) least = std::min(least, first[at_index(lane)]);
        for (const int lane : part.lanes) changed = std::exchange(first[at_index(lane)], least) != least || changed;
      }
    }
  }
  std::map<int, std::vector<int>> together;
  for (std::size_t lane = 0; lane < lanes; ++lane) together[first[lane]].push_back(static_cast<int>(lane));
  std::vector<std::vector<int>> companions(lanes);
  for (const auto& [least, members] : together) {
    for (const int lane : members) {
      if (members.size() > 1) companions[at_index(lane)] = members;
    }
  }
  return companions;
}

std::vector<Step::Lane::Cut> TransferTable::meetings() const {
  using Cut = Step::Lane::Cut;
  std::vector<Cut> cuts(static_cast<std::size_t>(scenario_.plan.pipeline), Cut::none);
  const auto any_inside = [](const Grouping& grouping) { return is_inside_layers(grouping.kind); };
  if (std::ranges::none_of(groupings_, any_inside)) return cuts;
  /// Transfers of one user follow each other, so that they never meet.
  struct User {
    GroupKind kind;  ///< tensor for all groups inside layers
    std::vector<int> lanes;
    auto operator<=>(const User&) const = default;
  };
  std::map<User, int> numbers;
  std::vector<User> users;
  constexpr int none = -1, many = -2;
  std::vector<std::pair<int, int>> users_of_link(static_cast<std::size_t>(topology_.links()), {none, none});
  auto visit_links = [&, crossed = std::vector<LinkId>()](const LoweredCollective& lowered, const auto& visit) mutable {
    for (const LoweredCollective::Phase& phase : lowered.phases) {
      for (const Flow& flow : phase.flows) {
        crossed.clear();
        topology_.append_route(flow.source, flow.destination, crossed);
        for (const LinkId link : crossed) visit(users_of_link[at_index(link)]);
      }
    }
  };
  const auto user_of = [&](std::size_t transfer, const Step::Transfer::Part& part) {
    const GroupKind kind = groupings_[at_index(entries_[transfer].grouping)].kind;
    const User user{is_inside_layers(kind) ? GroupKind::tensor : kind, part.lanes};
    const auto [number, is_new] = numbers.try_emplace(user, static_cast<int>(users.size()));
    if (is_new) users.push_back(user);
    return number->second;
  };
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    for (const Step::Transfer::Part& part : transfers_[i].parts) {
      const int user = user_of(i, part);
      visit_links(part.lowered, [&](std::pair<int, int>& link) {
        if (link.first == user || link.second == user) return;
        (link.first == none ? link.first : link.second) = link.second == none || link.first == none ? user : many;
      });
    }
  }
  for (const BackgroundFlow::Route& route : background_routes(scenario_.background, topology_)) {
    for (const LinkId link : topology_.route(route.source, route.destination).links) {
      users_of_link[at_index(link)] = {many, many};
    }
  }

  const Sync& sync = scenario_.plan.sync;
  const auto draws_route = [&, crossed = std::vector<LinkId>()](const Flow& flow) mutable {
    crossed.clear();
    topology_.append_route(flow.source, flow.destination, crossed);
    return std::ranges::any_of(crossed, [&](LinkId link) { return link >= topology_.first_fabric_link(); });
  };
  const bool gradients_all_along = scenario_.plan.zero == 3 || synchronises_every_micro_batch(scenario_.plan);
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const Grouping& grouping = groupings_[at_index(entries_[i].grouping)];
    if (!is_inside_layers(grouping.kind)) continue;
    for (const Step::Transfer::Part& part : transfers_[i].parts) {
      const int own = user_of(i, part);
      Cut& cut = cuts[static_cast<std::size_t>(grouping.stage)];
      // Collectives whose routes are drawn must be seen, even where they meet themselves alone.
      for (const LoweredCollective::Phase& phase : part.lowered.phases) {
        if (topology_.draws_routes() && std::ranges::any_of(phase.flows, draws_route)) cut = Cut::all;
      }
      visit_links(part.lowered, [&](const std::pair<int, int>& link) {
        for (const int other : {link.first, link.second}) {
          if (other == none || other == own) continue;
          const bool own_gradients = other >= 0 && users[at_index(other)].kind != GroupKind::neighbours &&
                                     !is_inside_layers(users[at_index(other)].kind) &&
                                     std::ranges::includes(users[at_index(other)].lanes, part.lanes);
          if (own_gradients && !gradients_all_along) {
            if (sync.overlap || sync.gather_overlap) cut = std::max(cut, Cut::ends);
          } else {
            cut = Cut::all;
          }
        }
      });
    }
  }
  return cuts;
}

}  // namespace foretrain
