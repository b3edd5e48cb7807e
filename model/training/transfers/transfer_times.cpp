#include "model/training/transfers/transfer_times.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/contention.hpp"
#include "model/collectives/link_load.hpp"

namespace foretrain {

namespace {

using Part = Step::Transfer::Part;
using Parts = std::vector<Part*>;

/// Time of one part while the others move beside it, phase by phase: those of their flows count that share a link with
/// it.
Seconds time_beside(const Parts& parts, std::size_t own, const Topology& topology,
                    std::span<const BackgroundFlow> background) {
  LoweredCollective together{"", parts[own]->lowered.phases};
  std::vector<bool> crossed(static_cast<std::size_t>(topology.links()));
  std::vector<LinkId> links;
  for (std::size_t k = 0; k < together.phases.size(); ++k) {
    std::vector<Flow>& flows = together.phases[k].flows;
    links.clear();
    for (const Flow& flow : flows) topology.append_route(flow.source, flow.destination, links);
    for (const LinkId link : links) crossed[at_index(link)] = true;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::vector<LoweredCollective::Phase>& others = parts[p]->lowered.phases;
      if (p == own || others.empty()) continue;
      for (const Flow& flow : others[std::min(k, others.size() - 1)].flows) {
        const std::size_t before = links.size();
        topology.append_route(flow.source, flow.destination, links);
        const auto shared = [&](LinkId link) { return crossed[at_index(link)]; };
        if (std::any_of(links.begin() + static_cast<std::ptrdiff_t>(before), links.end(), shared)) {
          flows.push_back(flow);
        }
        links.resize(before);
      }
    }
    for (const LinkId link : links) crossed[at_index(link)] = false;
  }
  return uncontended_time(together, topology, background);
}

bool meets(const LoweredCollective& lowered, const std::vector<bool>& links, const Topology& topology) {
  std::vector<LinkId> crossed;
  for (const LoweredCollective::Phase& phase : lowered.phases) {
    for (const Flow& flow : phase.flows) topology.append_route(flow.source, flow.destination, crossed);
  }
  return std::ranges::any_of(crossed, [&](LinkId link) { return links[at_index(link)]; });
}

/// The time of each part, the others beside it, on a network without background traffic.
void set_times_beside(const Parts& parts, const Topology& topology) {
  LinkLoad load(topology);
  std::size_t phases = 0;
  for (Part* part : parts) {
    part->uncontended = Seconds(0.0);
    phases = std::max(phases, part->lowered.phases.size());
  }
  for (std::size_t k = 0; k < phases; ++k) {
    for (const Part* part : parts) {
      const std::vector<LoweredCollective::Phase>& own = part->lowered.phases;
      if (!own.empty()) load.add(own[std::min(k, own.size() - 1)].flows);
    }
    for (Part* part : parts) {
      if (k >= part->lowered.phases.size()) continue;
      const LoweredCollective::Phase& phase = part->lowered.phases[k];
      part->uncontended += (phase.latency + load.busiest_of(phase.flows)) * static_cast<double>(phase.repeat);
    }
    load.clear();
  }
}

void set_times_beside(const Parts& parts, const Topology& topology, std::span<const BackgroundFlow> background) {
  set_times_beside(parts, topology);
  std::vector<bool> disturbed(static_cast<std::size_t>(topology.links()));
  for (const BackgroundFlow::Route& route : background_routes(background, topology)) {
    for (const LinkId link : topology.route(route.source, route.destination).links) disturbed[at_index(link)] = true;
  }
  for (std::size_t p = 0; p < parts.size() && !background.empty(); ++p) {
    if (meets(parts[p]->lowered, disturbed, topology)) {
      parts[p]->uncontended = time_beside(parts, p, topology, background);
    }
  }
}

/// Numbers things from 0 by what they are.
template <typename Thing>
class Numbers {
 public:
  int of(const Thing& thing) { return known_.try_emplace(thing, static_cast<int>(known_.size())).first->second; }
  [[nodiscard]] std::size_t count() const { return known_.size(); }

 private:
  std::map<Thing, int> known_;
};

/// Lanes and parts with the same number are alike; each round tells apart what those before it have told apart beside.
class AlikeLanes {
 public:
  AlikeLanes(std::span<const Step::Transfer> transfers, std::span<const RankClasses::Lane> lanes)
      : transfers_(transfers) {
    Numbers<std::pair<int, double>> numbers;
    for (const RankClasses::Lane& lane : lanes) lanes_.push_back(numbers.of({lane.stage, lane.speed}));
    for (std::size_t known = numbers.count(), before = 0; known > before;) before = std::exchange(known, refine());
  }

  [[nodiscard]] const std::vector<std::vector<int>>& parts() const { return parts_; }

 private:
  /// How many kinds of lanes there are now.
  std::size_t refine() {
    std::vector<std::set<int>> beside(lanes_.size());  // by lane: the parts that it carries out
    Numbers<std::pair<std::size_t, std::set<int>>> kinds;
    parts_.clear();
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      std::vector<int>& of_transfer = parts_.emplace_back();
      for (const Part& part : transfers_[i].parts) {
        std::set<int> members;
        for (const int lane : part.lanes) members.insert(lanes_[at_index(lane)]);
        of_transfer.push_back(kinds.of({i, std::move(members)}));
        for (const int lane : part.lanes) beside[at_index(lane)].insert(of_transfer.back());
      }
    }
    Numbers<std::pair<int, std::set<int>>> numbers;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      lanes_[lane] = numbers.of({lanes_[lane], std::move(beside[lane])});
    }
    return numbers.count();
  }

  std::span<const Step::Transfer> transfers_;
  std::vector<int> lanes_;
  std::vector<std::vector<int>> parts_;
};

}  // namespace

std::vector<std::vector<int>> parts_together(std::span<const Step::Transfer> transfers,
                                             std::span<const RankClasses::Lane> lanes) {
  return AlikeLanes(transfers, lanes).parts();
}

void set_times(std::span<Step::Transfer> transfers, std::span<const RankClasses::Lane> lanes, const Topology& topology,
               std::span<const BackgroundFlow> background) {
  const std::vector<std::vector<int>> together = parts_together(transfers, lanes);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    std::map<int, Parts> beside;
    for (std::size_t p = 0; p < together[i].size(); ++p) beside[together[i][p]].push_back(&transfers[i].parts[p]);
    if (transfers[i].parts.size() < 2) continue;
    for (const auto& [number, parts] : beside) set_times_beside(parts, topology, background);
  }
}

}  // namespace foretrain
