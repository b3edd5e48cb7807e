// Bytes per link of flows that run at the same time.
#pragma once

#include <algorithm>
#include <ranges>
#include <span>
#include <vector>

#include "model/collectives/collective.hpp"

namespace foretrain {

/// Adds up flows over links. One object serves many phases: its tables reach to the last link in use.
class LinkLoad {
 public:
  explicit LinkLoad(const Topology& topology) : topology_(topology) {}

  /// Time of the link that is busy longest. A link that stands twice in a route carries twice the bytes, and a card is
  /// busy with each message beside its bytes (visit_cards). Where the
  /// transport or the library limits connections, all flows between two endpoints share what these let through.
  Seconds busiest(const std::vector<Flow>& flows);
  /// The same of those that have been added since clear(), which are these.
  [[nodiscard]] Seconds busiest_alone(const std::vector<Flow>& flows) const;

  struct Busiest {
    Seconds time;
    LinkId link = -1;  ///< −1: a connection takes longer, or nothing moves
  };
  /// The same of some of the flows that have been added since clear().
  Busiest busiest_of(const std::vector<Flow>& flows);
  /// Time of the flows added since clear() on the link.
  [[nodiscard]] Seconds time_on(LinkId link) const;
  void add(const std::vector<Flow>& flows);
  void clear();

 private:
  [[nodiscard]] Seconds slowest_connection(const std::vector<Flow>& flows) const;

  const Topology& topology_;
  std::vector<Bytes> load_;  ///< all zero between calls
  std::vector<LinkId> links_, route_;
};

/// The card by which a route leaves its node, or, backwards, by which it arrives; null where it has none.
template <typename Links>
const LinkId* first_card(const Links& links, const Topology& topology) {
  const auto is_card = [&topology](LinkId link) {
    return link < topology.first_fabric_link() && topology.link_kind(link) == LinkKind::network;
  };
  const auto card = std::ranges::find_if(links, is_card);
  return card == std::ranges::end(links) ? nullptr : &*card;
}

/// Calls visit(card, times) for the cards that the flow's messages hold up: one where each byte takes `times` as long
/// as its bandwidth says. `route` is the flow's.
template <typename Visit>
void visit_cards(const Flow& flow, std::span<const LinkId> route, const Topology& topology, const Visit& visit) {
  if (!is_finite(flow.message)) return;
  const auto visit_card = [&](const LinkId* card, EndpointId end) {
    const Seconds each = topology.card_messages(topology.node_of(end)).message_time;
    if (each > Seconds(0.0)) visit(*card, 1.0 + topology.link_bandwidth(*card) * each / flow.message);
  };
  const LinkId* out = first_card(route, topology);
  if (out == nullptr) return;
  const LinkId* in = first_card(route | std::views::reverse, topology);
  visit_card(out, flow.source);
  if (in != out) visit_card(in, flow.destination);
}

}  // namespace foretrain
