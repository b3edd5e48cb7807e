// Which transfers may meet others, and which rank classes wait for each other inside layers.
#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/contention.hpp"
#include "model/training/transfers/transfer_table.hpp"

namespace foretrain {

namespace {

/// Users of each link: none, one, or more. Transfers of one user follow each other and never meet.
class LinkUsers {
 public:
  explicit LinkUsers(const Topology& topology)
      : topology_(topology), of_link_(static_cast<std::size_t>(topology.links()), {none, none}) {}

  void add(GroupKind kind, const Step::Transfer::Part& part) {
    const int user = number_of(kind, part.rank_classes);
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
  [[nodiscard]] Step::RankClass::SplitMode cut_of(const Step::Transfer::Part& part, const Plan& plan) {
    using SplitMode = Step::RankClass::SplitMode;
    const int own = number_of(GroupKind::tensor, part.rank_classes);
    const bool beside = plan.sync.overlap || plan.sync.gather_overlap;
    const bool all_along = plan.zero == 3 || synchronises_every_micro_batch(plan);
    const SplitMode for_gradients = all_along ? SplitMode::all : beside ? SplitMode::ends : SplitMode::none;
    const bool draws_routes = topology_.draws_routes();
    SplitMode cut = SplitMode::none;
    visit_links(part.lowered, topology_, [&](const Flow&, LinkId link) {
      // Collectives whose routes are drawn must be seen, even where they meet themselves alone.
      if (draws_routes && link >= topology_.first_fabric_link()) cut = SplitMode::all;
      const auto [first, second] = of_link_[at_index(link)];
      for (const int other : {first, second}) {
        if (other == none || other == own) continue;
        const bool own_gradients = other >= 0 && is_of_parameters(users_[at_index(other)].first) &&
                                   std::ranges::includes(users_[at_index(other)].second, part.rank_classes);
        cut = std::max(cut, own_gradients ? for_gradients : SplitMode::all);
      }
    });
    return cut;
  }

 private:
  using User = std::pair<GroupKind, std::vector<int>>;  // tensor for all groups inside layers; rank classes
  static constexpr int none = -1, many = -2;

  int number_of(GroupKind kind, const std::vector<int>& rank_classes) {
    const User user{is_inside_layers(kind) ? GroupKind::tensor : kind, rank_classes};
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

std::vector<std::vector<int>> TransferTable::lockstep_classes(std::size_t rank_classes) const {
  boost::disjoint_sets_with_storage<> sets(rank_classes);
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    if (!is_inside_layers(entries_[i].key.kind)) continue;
    for (const Step::Transfer::Part& part : transfers_[i].parts) {
      for (const int rank_class : part.rank_classes)
        sets.union_set(at_index(part.rank_classes.front()), at_index(rank_class));
    }
  }
  std::map<std::size_t, std::vector<int>> together;
  for (std::size_t rank_class = 0; rank_class < rank_classes; ++rank_class)
    together[sets.find_set(rank_class)].push_back(static_cast<int>(rank_class));
  std::vector<std::vector<int>> lockstep_classes(rank_classes);
  for (const auto& [any, members] : together) {
    for (const int rank_class : members) {
      if (members.size() > 1) lockstep_classes[at_index(rank_class)] = members;
    }
  }
  return lockstep_classes;
}

std::vector<Step::RankClass::SplitMode> TransferTable::meetings() const {
  std::vector<Step::RankClass::SplitMode> cuts(static_cast<std::size_t>(scenario_.plan.pipeline),
                                               Step::RankClass::SplitMode::none);
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
    Step::RankClass::SplitMode& cut = cuts[at_index(entries_[i].key.stage)];
    for (const Step::Transfer::Part& part : transfers_[i].parts) {
      cut = std::max(cut, users.cut_of(part, scenario_.plan));
    }
  }
  return cuts;
}

}  // namespace foretrain
