// Everything that is moving. Flows that meet no others are not simulated: their end is known when they start. Only when
// flows meet on a link, or background traffic, do they (and those they meet) become SimGrid flows, with what they have
// left to carry.
#pragma once

#include <vector>

#include "model/graph/event_queue.hpp"
#include "sim/folding.hpp"
#include "sim/network_plan.hpp"
#include "sim/platform.hpp"

namespace foretrain {

class MovingFlows {
 public:
  /// The plan must outlive this, and its links must have been bundled.
  explicit MovingFlows(const NetworkPlan& plan);

  /// Starts every flow of `set`, `repeat` times its bytes. The event that announces the end of all of them carries
  /// `task` and `part`; it is pushed to `events`, and must be shown to end() first.
  void start(SetIndex set, int repeat, Seconds now, TaskId task, std::int32_t part, EventQueue& events);

  /// Whether the event is the true end of its flows (and not the end they would have had without company).
  bool end(const Event& event);

  /// Whether flows have met that SimGrid does not know of yet: nothing later may happen before give_to() is called.
  [[nodiscard]] bool have_met() const { return !met_.empty(); }
  /// Hands the flows that have met to the platform, whose clock must have reached the date at which they met.
  void give_to(Platform& platform, const Folding& folding);
  /// Takes note of flows that the platform has finished, and announces the ends of sets whose last they were.
  void take_from(Platform& platform, EventQueue& events);

 private:
  using GroupId = std::int32_t;
  struct Group {
    SetIndex set = 0;
    int repeat = 1;
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

  GroupId new_group();
  void announce_end(GroupId id, Seconds date, EventQueue& events);
  void make_room(GroupId id, Seconds now);
  void release_links(GroupId id);
  [[nodiscard]] const NetworkPlan::FlowSet& set_of(const Group& g) const { return plan_.set(g.set); }
  LinkUse& use(LinkIndex link) { return links_[static_cast<std::size_t>(link)]; }
  Group& group(GroupId id) { return groups_[static_cast<std::size_t>(id)]; }

  const NetworkPlan& plan_;
  std::vector<LinkUse> links_;
  std::vector<Group> groups_;
  std::vector<GroupId> free_groups_;
  std::vector<GroupId> met_;
  std::vector<GroupId> group_of_flow_;
  bool background_started_ = false;
};

}  // namespace foretrain
