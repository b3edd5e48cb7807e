// Everything that is moving. Flows that meet no others are not simulated: their end is known when they start. Only when
// flows meet on a link, or background traffic, do they (and those they meet) become SimGrid flows, with what they have
// left to carry.
#pragma once

#include <optional>
#include <vector>

#include "model/graph/event_queue.hpp"
#include "sim/network_plan.hpp"
#include "sim/platform.hpp"

namespace foretrain {

class MovingFlows {
 public:
  /// The plan must outlive this, and its links must have been bundled. `fold` = false: every flow represents itself.
  MovingFlows(const NetworkPlan& plan, bool fold);

  /// Starts every flow of a set. The event that announces the end of all of them carries `task` and `part`; it is
  /// pushed to `events`, and must be shown to end() first.
  void start(NetworkPlan::Amount amount, Seconds now, TaskId task, std::int32_t part, EventQueue& events);

  /// Whether the event is the true end of its flows (and not the end they would have had without company).
  bool end(const Event& event);

  /// Handles an event of rates: SimGrid flows have ended, or flows have met. Announces the ends of sets whose last
  /// flows these were, and hands those that have met to the platform.
  void change_rates(const Event& event, Seconds now, EventQueue& events);

 private:
  using GroupId = std::int32_t;
  struct Group {
    NetworkPlan::Amount amount;
    Seconds started, uncontended_end;
    double left = 1.0;  ///< share of the bytes not yet carried when the group met another
    TaskId task = 0;
    std::int32_t part = 0;
    std::int32_t generation = 0;  ///< grows whenever a pushed end becomes void, or the group is used anew
    int flows_left = 0;           ///< on the platform
    bool holds_links = false;
  };
  struct LinkUse {
    std::int32_t groups = 0;
    GroupId sole_group = -1;  ///< the group that has every one of its links, this among them, to itself
  };
  /// Once flows have met: one flow for each class of equal ones (flow_classes.hpp), over one link for each class of
  /// equal links. Flows of a set start together and flows of a class belong to one set, so the classes hold whichever
  /// sets are moving. Every flow of a class always has the rate of its representative.
  struct Simulated {
    struct Representative {
      RouteIndex route = 0;
      Bytes bytes;
    };
    Simulated(const NetworkPlan& plan, bool fold, Seconds now);
    SharingSystem::Folded system;
    std::vector<std::vector<Representative>> flows_of_set;
    Platform platform;
  };

  GroupId new_group();
  void announce_end(GroupId id, Seconds date, EventQueue& events) const;
  void make_room(GroupId id, Seconds now);
  void release_links(GroupId id);
  void give_to(Simulated& simulated, Seconds now);
  /// The event before it, if any, is out of date.
  void expect_change(Seconds date, EventQueue& events) {
    events.push({date, Event::Kind::rates_change, 0, 0, 0, ++change_});
  }
  [[nodiscard]] const NetworkPlan::FlowSet& set_of(const Group& g) const { return plan_.set(g.amount.set); }
  LinkUse& use(LinkIndex link) { return links_[static_cast<std::size_t>(link)]; }
  Group& group(GroupId id) { return groups_[static_cast<std::size_t>(id)]; }

  const NetworkPlan& plan_;
  bool fold_;
  std::vector<LinkUse> links_;
  std::vector<Group> groups_;
  std::vector<GroupId> free_groups_;
  std::vector<GroupId> met_;  ///< that the platform does not know of yet
  std::optional<Simulated> simulated_;
  std::int32_t change_ = 0;  ///< the generation of the coming event of rates
};

}  // namespace foretrain
