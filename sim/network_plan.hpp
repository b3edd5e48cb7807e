// What a simulation's flows can use: the links that they cross, numbered from zero, and the sets of flows that start
// together, known before the first of them starts so that nothing else need exist in SimGrid.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "model/collectives/collective.hpp"
#include "model/collectives/contention.hpp"
#include "model/collectives/flow_classes.hpp"

namespace foretrain {

using LinkIndex = std::int32_t;
using SetIndex = std::int32_t;

class NetworkPlan {
 public:
  /// Flows that start together.
  struct FlowSet {
    std::vector<Flow> flows;       ///< one per pair of endpoints; none that is empty or stays where it is
    std::vector<LinkIndex> links;  ///< every link that any of them crosses, once; bundles once these are made
    Seconds uncontended;           ///< duration when nothing else moves: the busiest link's bytes over its bandwidth
  };

  /// The topology must outlive the plan.
  explicit NetworkPlan(const Topology& topology);

  /// Throws ImpossiblePlan when a flow crosses a link on which nothing can move.
  SetIndex add_set(std::vector<Flow> flows);
  /// Traffic that never ends; where its rate is limited it crosses a link of its own.
  void add_background(const BackgroundFlow::Route& route);

  /// After the last set. Links that the same sets cross, and background traffic or not, are of one use to all that only
  /// asks whose flows meet: they become one bundle, and FlowSet::links and background_bundles() name bundles.
  void complete();
  [[nodiscard]] std::size_t bundles() const { return bundles_; }
  [[nodiscard]] std::vector<LinkIndex> background_bundles() const;

  [[nodiscard]] const FlowSet& set(SetIndex set) const { return sets_[static_cast<std::size_t>(set)]; }
  [[nodiscard]] std::span<const FlowSet> sets() const { return sets_; }

  /// Every flow of every set, in order, then the background. Flows are of one kind when they belong to the same set and
  /// carry the same bytes.
  [[nodiscard]] const SharingSystem& sharing_system() const { return system_; }

 private:
  LinkIndex new_link(BytesPerSecond bandwidth);
  /// Numbers the links between two endpoints in `crossed_`.
  void find_links(EndpointId source, EndpointId destination);
  /// The same for a flow of a set: a connection that transport or library hold back crosses one more, its own; messages
  /// that hold up a card one for each card, which carries less by them. Messages of one size share it; beside others
  /// their bytes alone count.
  void find_route(const Flow& flow);
  [[nodiscard]] BytesPerSecond most_rate_of(const Flow& flow) const;

  const Topology& topology_;
  SharingSystem system_;
  std::int32_t kinds_ = 0;  ///< of flows
  std::vector<FlowSet> sets_;
  std::vector<std::vector<LinkIndex>> background_;  ///< what each flow crosses
  std::vector<LinkIndex> bundle_of_link_;
  std::size_t bundles_ = 0;
  std::vector<LinkIndex> link_index_;  ///< of every link of the topology; -1 where no flow crosses it
  std::map<std::tuple<EndpointId, EndpointId, BytesPerSecond>, LinkIndex> connection_limit_;
  std::map<std::pair<LinkId, double>, LinkIndex> held_cards_;  ///< by what a byte takes, of the card's own time
  std::vector<Bytes> load_;                                    ///< all zero between calls
  std::vector<LinkId> route_;                                  ///< what find_links has found, in the topology
  std::vector<LinkIndex> crossed_;
};

}  // namespace foretrain
