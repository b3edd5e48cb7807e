// Resources of a simulation's flows. The links that they cross, numbered from zero, and the sets of flows that start
// together, known before the first of them starts so that nothing else need exist in SimGrid.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/collectives/contention.hpp"
#include "model/collectives/crossed_links.hpp"
#include "model/collectives/flow_classes.hpp"

namespace foretrain {

using LinkIndex = std::int32_t;
using SetIndex = std::int32_t;

class NetworkPlan {
 public:
  struct FlowSet {
    std::vector<Flow> flows;       ///< one per pair of ends, none empty or to itself; none once the plan is complete
    std::vector<LinkIndex> links;  ///< every link that any of them crosses, once; bundles once these are made
    Seconds uncontended;           ///< duration when nothing else moves: the busiest link's bytes over its bandwidth
  };
  /// So many times the bytes of each of a set's flows.
  struct Amount {
    SetIndex set = 0;
    double times = 1.0;
  };

  /// The topology must outlive the plan.
  explicit NetworkPlan(const Topology& topology) : links_(topology) {}

  /// The set of these flows, a new one where none is theirs: buckets of other sizes move over the same links. Throws
  /// ImpossiblePlan when a flow crosses a link on which nothing can move.
  Amount add(const std::vector<Flow>& given);
  /// Traffic that never ends.
  void add_background(const Flow& route) { background_.push_back(links_.of_background(route)); }

  /// After the last set. Links that the same sets cross, and background traffic or not, are of one use to all that only
  /// asks whose flows meet. They become one bundle, and FlowSet::links and background_bundles() name bundles.
  void complete();
  [[nodiscard]] std::size_t bundles() const { return bundles_; }
  [[nodiscard]] std::vector<LinkIndex> background_bundles() const;

  [[nodiscard]] const FlowSet& set(SetIndex set) const { return sets_[static_cast<std::size_t>(set)]; }
  [[nodiscard]] std::span<const FlowSet> sets() const { return sets_; }

  /// Flows of one set that carry the same bytes. Each flow of the background is of its own: of no set, endless.
  struct Kind {
    SetIndex set = -1;
    Bytes bytes = Bytes::infinity();
  };
  /// Every flow of every set, in order, then the background.
  [[nodiscard]] const SharingSystem& sharing_system() const { return system_; }
  [[nodiscard]] std::span<const Kind> kinds() const { return kinds_; }

 private:
  [[nodiscard]] std::optional<Amount> find(const std::vector<Flow>& flows) const;

  CrossedLinks links_;
  SharingSystem system_;
  std::vector<Kind> kinds_;
  std::vector<FlowSet> sets_;
  std::unordered_multimap<std::uint64_t, SetIndex> sets_between_;  ///< by the ends of their first and last flows
  std::vector<std::vector<LinkIndex>> background_;                 ///< links of each flow
  std::vector<LinkIndex> bundle_of_link_;
  std::size_t bundles_ = 0;
  std::vector<Bytes> load_;  ///< of links; all zero between calls
};

}  // namespace foretrain
