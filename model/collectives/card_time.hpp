// Messages hold up the cards that they pass (CardMessages::message_time), and nothing else on their way.
#pragma once

#include <algorithm>
#include <ranges>
#include <span>

#include "model/collectives/collective.hpp"

namespace foretrain {

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
