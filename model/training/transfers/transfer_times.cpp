#include "model/training/transfers/transfer_times.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/contention.hpp"
#include "model/collectives/link_load.hpp"
#include "model/training/step/rank_classes.hpp"

namespace foretrain {

namespace {

using Part = Step::Transfer::Part;
using Parts = std::vector<Part>;

struct TimesBeside {
  Seconds time;
  std::vector<bool> meets;  ///< by part
};

/// Time of one part while the others move beside it, phase by phase: those of their flows count that share a link with
/// it.
TimesBeside time_beside(const Parts& parts, std::size_t own, const Topology& topology,
                        std::span<const BackgroundFlow> background) {
  LoweredCollective together{"", parts[own].lowered.phases};
  std::vector<bool> meets(parts.size());
  std::vector<bool> crossed(static_cast<std::size_t>(topology.links()));
  std::vector<LinkId> links;
  for (std::size_t k = 0; k < together.phases.size(); ++k) {
    std::vector<Flow>& flows = together.phases[k].flows;
    links.clear();
    for (const Flow& flow : flows) topology.append_route(flow.source, flow.destination, links);
    for (const LinkId link : links) crossed[at_index(link)] = true;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::vector<LoweredCollective::Phase>& others = parts[p].lowered.phases;
      if (p == own || others.empty()) continue;
      for (const Flow& flow : others[std::min(k, others.size() - 1)].flows) {
        const std::size_t before = links.size();
        topology.append_route(flow.source, flow.destination, links);
        const auto shared = [&](LinkId link) { return crossed[at_index(link)]; };
        if (std::any_of(links.begin() + static_cast<std::ptrdiff_t>(before), links.end(), shared)) {
          flows.push_back(flow);
          meets[p] = true;
        }
        links.resize(before);
      }
    }
    for (const LinkId link : links) crossed[at_index(link)] = false;
  }
  return {uncontended_time(together, topology, background), std::move(meets)};
}

bool meets(const LoweredCollective& lowered, const std::vector<bool>& links, const Topology& topology) {
  bool any = false;
  visit_links(lowered, topology, [&](const Flow&, LinkId link) { any = any || links[at_index(link)]; });
  return any;
}

/// Adds one phase to what each part takes beside all others, and who has how large a share in that.
class PhaseTogether {
 public:
  PhaseTogether(Parts& parts, const Topology& topology)
      : parts_(parts), load_(topology), busiest_(parts.size()), alone_(parts.size()), longer_(parts.size()) {
    for (std::vector<Seconds>& others : longer_) others.resize(parts.size());
  }

  void add(std::size_t k) {
    for (const Part& part : parts_) add_flows(part, k);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      busiest_[p] = {};
      if (k >= parts_[p].lowered.phases.size()) continue;
      const LoweredCollective::Phase& phase = parts_[p].lowered.phases[k];
      busiest_[p] = load_.busiest_of(phase.flows);
      parts_[p].links.together += (phase.latency + busiest_[p].time) * static_cast<double>(phase.repeat);
      parts_[p].links.latency += phase.latency * static_cast<double>(phase.repeat);
    }
    load_.clear();
    for (std::size_t other = 0; other < parts_.size(); ++other) {
      add_flows(parts_[other], k);
      if (const auto& phases = parts_[other].lowered.phases; k < phases.size()) {
        alone_[other] += (phases[k].latency + load_.busiest_alone(phases[k].flows)) * number(phases[k].repeat);
      }
      for (std::size_t p = 0; p < parts_.size(); ++p) {
        if (p == other || busiest_[p].link < 0) continue;
        longer_[p][other] += load_.time_on(busiest_[p].link) * static_cast<double>(parts_[p].lowered.phases[k].repeat);
      }
      load_.clear();
    }
  }
  /// By part: what it takes if nothing else moves.
  [[nodiscard]] const std::vector<Seconds>& alone() const { return alone_; }
  /// By part, by other part.
  [[nodiscard]] const std::vector<std::vector<Seconds>>& longer() const { return longer_; }

 private:
  /// Transfers with fewer phases stay in their last one.
  void add_flows(const Part& part, std::size_t k) {
    const std::vector<LoweredCollective::Phase>& phases = part.lowered.phases;
    if (!phases.empty()) load_.add(phases[std::min(k, phases.size() - 1)].flows);
  }

  Parts& parts_;
  LinkLoad load_;
  std::vector<LinkLoad::Busiest> busiest_;  ///< by part
  std::vector<Seconds> alone_;
  std::vector<std::vector<Seconds>> longer_;
};

/// Beside all others, on a network without background traffic.
void set_times_together(Parts& parts, const Topology& topology) {
  std::size_t phases = 0;
  for (const Part& part : parts) phases = std::max(phases, part.lowered.phases.size());
  PhaseTogether together(parts, topology);
  for (std::size_t k = 0; k < phases; ++k) together.add(k);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    parts[p].uncontended = together.alone()[p];
    for (std::size_t other = 0; other < parts.size(); ++other) {
      const Seconds longer = together.longer()[p][other];
      if (longer > Seconds(0.0)) parts[p].links.meetings.push_back({parts[other].rank_classes.front(), longer});
    }
  }
}

/// Beside the background, too. It may leave less of a link that they share than of what is busiest without it: whom a
/// part meets there holds it up as much as any other.
void set_time_beside(Parts& parts, std::size_t own, const Topology& topology,
                     std::span<const BackgroundFlow> background) {
  Part& part = parts[own];
  const auto [time, meets] = time_beside(parts, own, topology, background);
  for (LinkShare::Meeting& other : part.links.meetings) other.longer *= time / part.links.together;
  part.links.together = time;
  if (!part.links.meetings.empty() || !(time > part.uncontended)) return;
  const Seconds longer = (time - part.uncontended) / number(std::ranges::count(meets, true));
  for (std::size_t other = 0; other < parts.size(); ++other) {
    if (meets[other]) part.links.meetings.push_back({parts[other].rank_classes.front(), longer});
  }
}

}  // namespace

void set_times(Parts& parts, int among, const Topology& topology, std::span<const BackgroundFlow> background) {
  if (parts.size() < 2) return;
  set_times_together(parts, topology);
  std::vector<bool> disturbed(static_cast<std::size_t>(topology.links()));
  for (const Flow& route : background_flows(background, topology)) {
    for (const LinkId link : topology.route(route.source, route.destination).links) disturbed[at_index(link)] = true;
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    LinkShare& links = parts[p].links;
    links.among = among;
    links.number = parts[p].rank_classes.front();  // which no other part of these groups has
    if (background.empty()) continue;
    parts[p].uncontended = uncontended_time(parts[p].lowered, topology, background);
    if (!meets(parts[p].lowered, disturbed, topology)) continue;
    set_time_beside(parts, p, topology, background);
  }
  const bool shares = std::ranges::any_of(parts, [](const Part& part) { return !part.links.meetings.empty(); });
  for (Part& part : parts) part.links.shares = shares;
}

Seconds least_time(const LoweredCollective& lowered, const std::vector<int>& group_of_rank, const Topology& topology) {
  LinkLoad load(topology);
  std::map<int, Seconds> times;  // by group
  for (const LoweredCollective::Phase& phase : lowered.phases) {
    std::map<int, std::vector<Flow>> flows;
    for (const Flow& flow : phase.flows) {
      const int group = group_of_flow(flow, group_of_rank);
      if (group < 0) return Seconds(0.0);
      flows[group].push_back(flow);
    }
    for (const auto& [group, own] : flows) {
      times[group] += (phase.latency + load.busiest(own)) * static_cast<double>(phase.repeat);
    }
  }
  Seconds least = times.empty() ? Seconds(0.0) : Seconds::infinity();
  for (const auto& [group, time] : times) least = std::min(least, time);
  return least;
}

}  // namespace foretrain
