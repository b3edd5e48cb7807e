// Which transfers may meet others, and which lanes wait for each other inside layers.
#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/contention.hpp"
#include "model/training/transfers/transfer_table.hpp"

namespace foretrain {

namespace {

/// Who sends over each link: nobody, one user, two or more. Transfers of one user follow each other, so that they never
/// meet.
class LinkUsers {
 public:
  explicit LinkUsers(const Topology& topology)
      : topology_(topology), of_link_(static_cast<std::size_t>(topology.links()), {none, none}) {}

  void add(GroupKind kind, const Step::Transfer::Part& part) {
    const int user = number_of(kind, part.lanes);
    visit_links(part.lowered, topology_, [&](const Flow&, LinkId crossed) {
      std::pair<int, int>& link = of_link_[at_index(crossed)];
      if (link.first == user || link.second == user) return;
      (link.first == none ? link.first : link.second) = link.second == none || link.first == none ? user : many;
    });
  }

  void add_background(const std::vector<BackgroundFlow>& background) {
    for (const Flow& route : background_flows(background, topology_)) {
      for (const LinkId link : topology_.route(route.source, route.destination).links) {
        of_link_[at_index(link)] = {many, many};
      }
    }
  }

  /// Which passes a part of a transfer inside layers cuts, once all users are known.
  [[nodiscard]] Step::Lane::Cut cut_of(const Step::Transfer::Part& part, const Plan& plan) {
    using Cut = Step::Lane::Cut;
    const int own = number_of(GroupKind::tensor, part.lanes);
    const bool beside = plan.sync.overlap || plan.sync.gather_overlap;
    const bool all_along = plan.zero == 3 || synchronises_every_micro_batch(plan);
    const Cut for_gradients = all_along ? Cut::all : beside ? Cut::ends : Cut::none;
    const bool draws_routes = topology_.draws_routes();
    Cut cut = Cut::none;
    visit_links(part.lowered, topology_, [&](const Flow&, LinkId link) {
      // Collectives whose routes are drawn must be seen, even where they meet themselves alone.
      if (draws_routes && link >= topology_.first_fabric_link()) cut = Cut::all;
      const auto [first, second] = of_link_[at_index(link)];
      for (const int other : {first, second}) {
        if (other == none || other == own) continue;
        const bool own_gradients = other >= 0 && is_of_parameters(users_[at_index(other)].first) &&
                                   std::ranges::includes(users_[at_index(other)].second, part.lanes);
        cut = std::max(cut, own_gradients ? for_gradients : Cut::all);
      }
    });
    return cut;
  }

 private:
  using User = std::pair<GroupKind, std::vector<int>>;  // tensor for all groups inside layers; lanes
  static constexpr int none = -1, many = -2;

  int number_of(GroupKind kind, const std::vector<int>& lanes) {
    const User user{is_inside_layers(kind) ? GroupKind::tensor : kind, lanes};
    const auto [number, is_new] = numbers_.try_emplace(user, static_cast<int>(users_.size()));
    if (is_new) users_.push_back(user);
    return number->second;
  }

  const Topology& topology_;
  std::map<User, int> numbers_;
  std::vector<User> users_;
  std::vector<std::pair<int, int>> of_link_;
};

}  // namespace

std::vector<std::vector<int>> TransferTable::companions(std::size_t lanes) const {
  boost::disjoint_sets_with_storage<> sets(lanes);
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    if (!is_inside_layers(entries_[i].key.kind)) continue;
    for (const Step::Transfer::Part& part : transfers_[i].parts) {
      for (const int lane : part.lanes) sets.union_set(at_index(part.lanes.front()), at_index(lane));
    }
  }
  std::map<std::size_t, std::vector<int>> together;
  for (std::size_t lane = 0; lane < lanes; ++lane) together[sets.find_set(lane)].push_back(static_cast<int>(lane));
  std::vector<std::vector<int>> companions(lanes);
  for (const auto& [any, members] : together) {
    for (const int lane : members) {
      if (members.size() > 1) companions[at_index(lane)] = members;
    }
  }
  return companions;
}

std::vector<Step::Lane::Cut> TransferTable::meetings() const {
  std::vector<Step::Lane::Cut> cuts(static_cast<std::size_t>(scenario_.plan.pipeline), Step::Lane::Cut::none);
  const auto any_inside = [](const Groups* groups) { return is_inside_layers(groups->kind); };
  if (std::ranges::none_of(groupings_, any_inside)) return cuts;
  LinkUsers users(topology_);
  const std::vector<std::size_t> seen = distinct();
  for (const std::size_t i : seen) {
    const GroupKind kind = entries_[i].key.kind;
    for (const Step::Transfer::Part& part : transfers_[i].parts) users.add(kind, part);
  }
  users.add_background(scenario_.background);

  for (const std::size_t i : seen) {
    if (!is_inside_layers(entries_[i].key.kind)) continue;
    Step::Lane::Cut& cut = cuts[at_index(entries_[i].key.stage)];
    for (const Step::Transfer::Part& part : transfers_[i].parts) {
      cut = std::max(cut, users.cut_of(part, scenario_.plan));
    }
  }
  return cuts;
}

}  // namespace foretrain
