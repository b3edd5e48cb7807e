#include "model/graph/shared_links.hpp"

#include <algorithm>
#include <utility>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

void mark(std::vector<bool>& numbers, int number) {
  if (at_index(number) >= numbers.size()) numbers.resize(at_index(number) + 1);
  numbers[at_index(number)] = true;
}

}  // namespace

SharedLinks::Group& SharedLinks::group_of(TaskId task) {
  const std::size_t among = at_index(graph_.block_of(task).links.among);
  if (among >= groups_.size()) groups_.resize(among + 1);
  return groups_[among];
}

void SharedLinks::begin(TaskId task, Seconds now, EventQueue& events) {
  group_of(task).collectives.push_back({task, now});
  events.push({now + graph_.block_of(task).links.latency, Event::Kind::flows_start, task});
}

bool SharedLinks::handle(const Event& event, Seconds now, EventQueue& events) {
  if (event.kind == Event::Kind::rates_change) {
    set_speeds(event.group, now, events);
    return false;
  }
  std::vector<Collective>& collectives = group_of(event.task).collectives;
  const auto collective = std::ranges::find(collectives, event.task, &Collective::task);
  const bool ends = event.kind == Event::Kind::flows_end;
  if (collective == collectives.end() || (ends && event.generation != collective->generation)) return false;
  if (ends) {
    collectives.erase(collective);
  } else {
    collective->moves = true;
  }
  speeds_change(graph_.block_of(event.task).links.among, now, events);
  return ends;
}

void SharedLinks::speeds_change(std::int32_t number, Seconds now, EventQueue& events) {
  if (std::exchange(groups_[at_index(number)].will_set_speeds, true)) return;
  events.push({now, Event::Kind::rates_change, 0, 0, number});
}

/// Beside those that move now.
Seconds SharedLinks::duration(TaskId task, const Group& group) const {
  const Block& block = graph_.block_of(task);
  Seconds time = block.links.together;
  for (const LinkShare::Meeting& other : block.links.meetings) {
    const bool moves = at_index(other.number) < group.moving.size() && group.moving[at_index(other.number)];
    if (!moves) time -= other.longer;
  }
  return std::max(time, block.uncontended);
}

/// A collective whose speed stays keeps its end: rounding must not move what nothing disturbs.
void SharedLinks::set_speeds(std::int32_t number, Seconds now, EventQueue& events) {
  Group& group = groups_[at_index(number)];
  group.will_set_speeds = false;
  group.moving.assign(group.moving.size(), false);
  for (const Collective& c : group.collectives) {
    if (c.moves) mark(group.moving, graph_.block_of(c.task).links.number);
  }
  for (Collective& c : group.collectives) {
    if (!c.moves) continue;
    const Seconds whole = duration(c.task, group);
    const Seconds takes = whole - graph_.block_of(c.task).links.latency;
    if (c.generation > 0 && takes == c.takes) continue;
    if (c.takes > Seconds(0.0)) c.left = std::max(0.0, c.left - (now - c.since) / c.takes);
    c.since = now;
    c.takes = takes;
    const Seconds end = c.left == 1.0 ? c.begun + whole : now + takes * c.left;
    events.push({end, Event::Kind::flows_end, c.task, 0, number, ++c.generation});
  }
}

}  // namespace foretrain
