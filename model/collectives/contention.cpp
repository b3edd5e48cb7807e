#include "model/collectives/contention.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/base/error.hpp"
#include "model/collectives/crossed_links.hpp"
#include "model/collectives/flow_classes.hpp"
#include "model/collectives/link_load.hpp"

namespace foretrain {

namespace {

EndpointId endpoint_of(const BackgroundFlow::Place& place, const Topology& topology) {
  switch (place.kind) {
    case BackgroundFlow::Place::Kind::gpu:
      return topology.gpu(place.number);
    case BackgroundFlow::Place::Kind::node_memory:
      return topology.host(place.number, place.socket);
    case BackgroundFlow::Place::Kind::memory_of_gpu:
      return topology.host_of_gpu(place.number);
    case BackgroundFlow::Place::Kind::outside:
      return topology.outside(place.number);
  }
  return 0;
}

/// Time that flow classes need for these bytes while those with an infinite amount go on for ever.
Seconds time_to_finish(const SharingSystem::Folded& system, std::vector<Bytes> left) {
  std::vector<bool> active(system.classes(), true);
  MaxMinRates fair(system);
  Seconds time;
  for (;;) {
    const std::vector<BytesPerSecond>& rates = fair.of(active);
    Seconds next = Seconds::infinity();
    bool moving = false;
    for (std::size_t id = 0; id < left.size(); ++id) {
      if (!active[id] || !is_finite(left[id])) continue;
      moving = true;
      next = std::min(next, left[id] / rates[id]);
    }
    if (!moving) return time;
    time += next;
    for (std::size_t id = 0; id < left.size(); ++id) {
      if (!active[id] || !is_finite(left[id])) continue;
      // Ends that are equal on paper may differ by rounding.
      active[id] = left[id] / rates[id] > next * (1.0 + 1e-12);
      left[id] -= rates[id] * next;
    }
  }
}

class ContendedPhases {
 public:
  ContendedPhases(const Topology& topology, std::vector<Flow> background)
      : topology_(topology), background_(std::move(background)), load_(topology) {
    for (const Flow& route : background_) {
      topology.append_route(route.source, route.destination, background_links_);
    }
    std::ranges::sort(background_links_);
  }

  Seconds time(const LoweredCollective::Phase& phase) {
    return (phase.latency + (meets_background(phase) ? shared(phase) : load_.busiest(phase.flows))) *
           static_cast<double>(phase.repeat);
  }

 private:
  bool meets_background(const LoweredCollective::Phase& phase) {
    if (background_links_.empty()) return false;
    return std::ranges::any_of(phase.flows, [&](const Flow& flow) {
      crossed_.clear();
      if (flow.bytes > Bytes(0.0)) topology_.append_route(flow.source, flow.destination, crossed_);
      return std::ranges::any_of(crossed_,
                                 [&](LinkId link) { return std::ranges::binary_search(background_links_, link); });
    });
  }

  [[nodiscard]] Seconds shared(const LoweredCollective::Phase& phase) const {
    CrossedLinks links(topology_);
    SharingSystem system;
    std::map<Bytes, std::int32_t> kinds;  // flows of the phase differ by their bytes
    std::vector<Bytes> left_of_flow;
    for (const Flow& flow : merge_by_ends(phase.flows)) {
      if (flow.bytes <= Bytes(0.0) || flow.source == flow.destination) continue;
      const auto kind = kinds.try_emplace(flow.bytes, static_cast<std::int32_t>(kinds.size())).first->second;
      system.add_flow(kind, links.of(flow), flow.weight);
      left_of_flow.push_back(flow.bytes);
    }
    auto kind = static_cast<std::int32_t>(kinds.size());
    for (const Flow& route : background_) {
      system.add_flow(kind++, links.of_background(route));
      left_of_flow.push_back(Bytes::infinity());
    }
    system.bandwidth = links.bandwidth();
    const SharingSystem::Folded folded = fold(system);
    std::vector<Bytes> left(folded.classes());
    for (std::size_t flow = 0; flow < left_of_flow.size(); ++flow) {
      left[static_cast<std::size_t>(folded.class_of_flow[flow])] = left_of_flow[flow];
    }
    return time_to_finish(folded, std::move(left));
  }

  const Topology& topology_;
  std::vector<Flow> background_;
  LinkLoad load_;
  std::vector<LinkId> background_links_;  // sorted
  std::vector<LinkId> crossed_;
};

}  // namespace

std::vector<Flow> background_flows(std::span<const BackgroundFlow> background, const Topology& topology) {
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < background.size(); ++i) {
    const BackgroundFlow& flow = background[i];
    const EndpointId source = endpoint_of(flow.from, topology), destination = endpoint_of(flow.to, topology);
    if (source == destination) {
      throw ScenarioError(flow.where, "background[" + std::to_string(i) + "].to",
                          "the traffic stays in one memory (" + topology.endpoint_name(source) + ")",
                          "another place than from");
    }
    flows.push_back({source, destination, Bytes::infinity()});
    flows.back().most_rate = flow.rate;
  }
  return flows;
}

Seconds uncontended_time(const LoweredCollective& lowered, const Topology& topology,
                         std::span<const BackgroundFlow> background) {
  ContendedPhases phases(topology, background_flows(background, topology));
  Seconds time;
  for (const LoweredCollective::Phase& phase : lowered.phases) time += phases.time(phase);
  return time;
}

}  // namespace foretrain
