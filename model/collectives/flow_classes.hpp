// Flows that must fare alike are simulated once. The classes are the coarsest equitable partition of the graph of flows
// and links. Links of a class have the same bandwidth, and equally many flows of each class cross them. Flows of a
// class have the same kind (who starts it, how many bytes) and weight, and cross equally many links of each class.
// Max–min fair rates are then equal within a class, whichever kinds are moving, so that one flow and one link can stand
// for each class, and no result changes (but see fold()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// Flows over links. A flow that crosses a link twice counts twice there.
struct SharingSystem {
  /// Classes of flows over classes of links, numbered in the order of their first members.
  struct Folded {
    /// Every link of class `link` is crossed by this many flows of the class that the crossing belongs to. The numbers
    /// of one link have no common divisor: its bandwidth has been divided by it.
    struct Crossing {
      std::int32_t link = 0;
      std::int32_t flows = 1;
    };
    std::vector<BytesPerSecond> bandwidth;
    std::vector<std::int32_t> class_of_flow;
    std::vector<std::vector<Crossing>> crossings;  ///< of every class of flows
    std::vector<double> weight;                    ///< of a flow of every class

    [[nodiscard]] std::size_t classes() const { return crossings.size(); }
  };

  std::vector<BytesPerSecond> bandwidth;       ///< of every link
  std::vector<std::int32_t> kind;              ///< of every flow: only flows of the same kind may share a class
  std::vector<double> weight;                  ///< of every flow (Flow::weight)
  std::vector<std::size_t> first_crossing{0};  ///< flow f crosses link[first_crossing[f]] … [first_crossing[f + 1])
  std::vector<std::int32_t> link;

  [[nodiscard]] std::size_t flows() const { return kind.size(); }
  [[nodiscard]] std::size_t links() const { return bandwidth.size(); }
  [[nodiscard]] std::span<const std::int32_t> links_of(std::size_t flow) const {
    return std::span(link).subspan(first_crossing[flow], first_crossing[flow + 1] - first_crossing[flow]);
  }
  void add_flow(std::int32_t kind_of_flow, std::span<const std::int32_t> links_crossed, double weight_of_flow = 1.0);
};

/// The coarsest classes (equitable_partition.hpp). Where these are more than `most_classes` of flows, as when one slow
/// card tells all others apart by their distance from it, what lies beyond the distance that makes so many is taken for
/// alike. The most common member of a class stands for it. Throws UsageError where that leaves flows without links.
SharingSystem::Folded fold(const SharingSystem& system, std::size_t most_classes = 8192);

/// Every flow in a class of its own.
SharingSystem::Folded keep_apart(const SharingSystem& system);

/// Weighted max–min fair rates. Progressive filling: all rates grow together, in proportion to their weights; when a
/// link is full, the flows that cross it keep their rate. Source: Bertsekas and Gallager, "Data Networks", 2nd ed.
/// (1992), section 6.5.2.
class MaxMinRates {
 public:
  /// The system must outlive it.
  explicit MaxMinRates(const SharingSystem::Folded& system);
  /// Of a flow of each class while the classes with `active` move, until the next call; zero for the others, infinite
  /// for a flow that crosses no link.
  const std::vector<BytesPerSecond>& of(const std::vector<bool>& active);

 private:
  struct Link {
    BytesPerSecond free = {};  ///< what flows whose rate is settled leave
    double growing = 0.0;      ///< weight of the others
    int unsettled = 0;         ///< classes of these
    [[nodiscard]] BytesPerSecond share() const { return free / growing; }
  };
  struct Share {
    double share = 0.0;  ///< in bytes per second
    std::size_t link = 0;
  };
  void start(const std::vector<bool>& active);
  void settle(std::size_t fullest, BytesPerSecond share);

  const SharingSystem::Folded& system_;
  std::vector<Link> links_;
  std::vector<std::size_t> first_user_;  ///< of each link in `users_`
  std::vector<std::int32_t> users_;      ///< classes
  std::vector<BytesPerSecond> rates_;
  std::vector<bool> settled_;
  std::size_t unsettled_ = 0;  ///< classes
  std::vector<Share> shares_;  ///< a heap; at most what they are now
};

}  // namespace foretrain
