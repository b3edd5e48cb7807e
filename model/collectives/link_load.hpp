// Bytes per link of flows that run at the same time.
#pragma once

#include <vector>

#include "model/collectives/collective.hpp"

namespace foretrain {

/// Adds up flows over links. One object serves many phases: its tables reach to the last link in use.
class LinkLoad {
 public:
  explicit LinkLoad(const Topology& topology) : topology_(topology) {}

  /// Time of the link that is busy longest; a link that stands twice in a route carries twice the bytes, and a card is
  /// busy with each message beside its bytes (card_time.hpp). Where the
  /// transport or the library limits connections, all flows between two endpoints share what these let through.
  Seconds busiest(const std::vector<Flow>& flows);

  struct Busiest {
    Seconds time;
    LinkId link = -1;  ///< −1: a connection takes longer, or nothing moves
  };
  /// The same of some of the flows that have been added since clear().
  Busiest busiest_of(const std::vector<Flow>& flows);
  /// What the flows added since clear() take on the link.
  [[nodiscard]] Seconds time_on(LinkId link) const;
  void add(const std::vector<Flow>& flows);
  void clear();

 private:
  [[nodiscard]] Seconds slowest_connection(const std::vector<Flow>& flows) const;

  const Topology& topology_;
  std::vector<Bytes> load_;  ///< all zero between calls
  std::vector<LinkId> links_, route_;
};

}  // namespace foretrain
