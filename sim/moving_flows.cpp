#include "sim/moving_flows.hpp"

#include "model/base/number.hpp"

namespace foretrain {

namespace {

// Meetings shorter than this are none: two dates that are equal on paper may differ by rounding after many additions.
constexpr Seconds shortest_meeting = 0.001_ns;

}  // namespace

MovingFlows::Simulated::Simulated(const NetworkPlan& plan, bool fold, Seconds now)
    : system(fold ? foretrain::fold(plan.sharing_system()) : keep_apart(plan.sharing_system())), platform(system) {
  flows_of_set.resize(plan.sets().size());
  RouteIndex next = 0;
  for (std::size_t flow = 0; flow < system.class_of_flow.size(); ++flow) {
    if (system.class_of_flow[flow] != next) continue;  // classes are numbered by their first members
    const auto& [set, bytes] = plan.kinds()[at_index(plan.sharing_system().kind[flow])];
    if (set < 0) {
      platform.start(next, bytes, -1, now);
    } else {
      flows_of_set[at_index(set)].push_back({next, bytes});
    }
    ++next;
  }
}

MovingFlows::MovingFlows(const NetworkPlan& plan, bool fold) : plan_(plan), fold_(fold), links_(plan.bundles()) {
  for (const LinkIndex link : plan.background_bundles()) ++use(link).groups;  // no set ever has it alone
}

MovingFlows::GroupId MovingFlows::new_group() {
  if (free_groups_.empty()) {
    groups_.emplace_back();
    return static_cast<GroupId>(groups_.size() - 1);
  }
  const GroupId id = free_groups_.back();
  free_groups_.pop_back();
  return id;
}

void MovingFlows::announce_end(GroupId id, Seconds date, EventQueue& events) const {
  const Group& g = groups_[static_cast<std::size_t>(id)];
  events.push({date, Event::Kind::flows_end, g.task, g.part, id, g.generation});
}

void MovingFlows::release_links(GroupId id) {
  Group& g = group(id);
  if (!g.holds_links) return;
  g.holds_links = false;
  for (const LinkIndex link : set_of(g).links) {
    LinkUse& u = use(link);
    --u.groups;
    if (u.sole_group == id) u.sole_group = -1;
  }
}

void MovingFlows::make_room(GroupId id, Seconds now) {
  Group& g = group(id);
  if (g.uncontended_end - now < shortest_meeting) {
    release_links(id);  // its end stands as announced
    return;
  }
  // All flows of an uncontended group are taken to advance in proportion, as the chunks of one collective do.
  g.left = (g.uncontended_end - now) / (g.uncontended_end - g.started);
  ++g.generation;
  for (const LinkIndex link : set_of(g).links) use(link).sole_group = -1;
  met_.push_back(id);
}

void MovingFlows::start(NetworkPlan::Amount amount, Seconds now, TaskId task, std::int32_t part, EventQueue& events) {
  const NetworkPlan::FlowSet& set = plan_.set(amount.set);
  const GroupId id = new_group();
  {
    Group& g = group(id);
    g = {amount, now, now + set.uncontended * amount.times, 1.0, task, part, g.generation + 1, 0, true};
  }
  bool uncontended = true;
  for (const LinkIndex link : set.links) {
    if (use(link).sole_group >= 0) make_room(use(link).sole_group, now);
  }
  for (const LinkIndex link : set.links) {
    if (use(link).groups++ > 0) uncontended = false;
  }
  if (uncontended) {
    for (const LinkIndex link : set.links) use(link).sole_group = id;
  }
  if (uncontended || group(id).uncontended_end - now < shortest_meeting) {
    announce_end(id, group(id).uncontended_end, events);
  } else {
    met_.push_back(id);
  }
  if (!met_.empty()) expect_change(now, events);
}

bool MovingFlows::end(const Event& event) {
  if (group(event.group).generation != event.generation) return false;
  release_links(event.group);
  ++group(event.group).generation;
  free_groups_.push_back(event.group);
  return true;
}

void MovingFlows::give_to(Simulated& simulated, Seconds now) {
  for (const GroupId id : met_) {
    Group& g = group(id);
    for (const Simulated::Representative& flow : simulated.flows_of_set[at_index(g.amount.set)]) {
      simulated.platform.start(flow.route, flow.bytes * (g.amount.times * g.left), id, now);
      ++g.flows_left;
    }
  }
  met_.clear();
}

void MovingFlows::change_rates(const Event& event, Seconds now, EventQueue& events) {
  if (event.generation != change_) return;
  if (!simulated_) simulated_.emplace(plan_, fold_, now);
  bool announced = false;
  for (const GroupId id : simulated_->platform.end_flows(now)) {
    if (--group(id).flows_left > 0) continue;
    announce_end(id, now, events);
    announced = true;
  }
  give_to(*simulated_, now);
  if (announced) return expect_change(now, events);  // behind all that follows at this date
  simulated_->platform.share_links();
  const Seconds next = simulated_->platform.first_end();
  if (is_finite(next)) expect_change(next, events);
}

}  // namespace foretrain
