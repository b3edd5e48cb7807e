// Symmetric flows folded into representatives: what SimGrid is given instead of the whole plan.
#pragma once

#include <span>
#include <vector>

#include "sim/link_sharing.hpp"
#include "sim/network_plan.hpp"

namespace foretrain {

/// One flow for each class of equal ones (flow_classes.hpp), over one link for each class of equal links. Flows of a
/// set start together and flows of a class belong to one set, so that the classes hold whichever sets are moving: every
/// flow of a class has at all times what its representative has.
class Folding {
 public:
  struct Representative {
    RouteIndex route = 0;
    Bytes bytes;
  };

  /// `fold` = false: every flow represents itself.
  explicit Folding(const NetworkPlan& plan, bool fold = true);

  [[nodiscard]] const RoutedLinks& links() const { return links_; }
  [[nodiscard]] std::span<const Representative> flows_of(SetIndex set) const;
  [[nodiscard]] std::span<const RouteIndex> background() const { return background_; }

 private:
  RoutedLinks links_;
  std::vector<Representative> flows_;  ///< set by set
  std::vector<std::size_t> first_;     ///< of each set in flows_
  std::vector<RouteIndex> background_;
};

}  // namespace foretrain
