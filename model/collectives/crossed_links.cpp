#include "model/collectives/crossed_links.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/collectives/link_load.hpp"

namespace foretrain {

CrossedLinks::CrossedLinks(const Topology& topology) : topology_(topology), number_(at_index(topology.links()), -1) {}

std::int32_t CrossedLinks::new_link(BytesPerSecond bandwidth) {
  if (!(bandwidth > BytesPerSecond(0.0))) {
    throw ImpossiblePlan(
        fmt::format("a flow crosses a link of {} byte/s, on which nothing can move", bandwidth.value()));
  }
  bandwidth_.push_back(bandwidth);
  return static_cast<std::int32_t>(bandwidth_.size() - 1);
}

/// Returns the rate limit of the connection; writes its links to `crossed_`.
BytesPerSecond CrossedLinks::find(const Flow& flow) {
  route_.clear();
  crossed_.clear();
  topology_.append_route(flow.source, flow.destination, route_);
  for (const LinkId link : route_) {
    std::int32_t& known = number_[at_index(link)];
    if (known < 0) known = new_link(topology_.link_bandwidth(link));
    crossed_.push_back(known);
  }
  visit_cards(flow, route_, topology_, [&](LinkId card, double times) {
    const auto [held, is_new] = held_cards_.try_emplace({card, times}, 0);
    if (is_new) held->second = new_link(topology_.link_bandwidth(card) / times);
    crossed_.push_back(held->second);
  });
  if (!topology_.limits_connections()) return flow.most_rate;
  return std::min(flow.most_rate, topology_.most_rate(flow.source, flow.destination));
}

const std::vector<std::int32_t>& CrossedLinks::of(const Flow& flow) {
  if (const BytesPerSecond most = find(flow); is_finite(most)) {
    const auto [limit, is_new] = connection_limit_.try_emplace({flow.source, flow.destination, most}, 0);
    if (is_new) limit->second = new_link(most);
    crossed_.push_back(limit->second);
  }
  return crossed_;
}

const std::vector<std::int32_t>& CrossedLinks::of_background(const Flow& flow) {
  if (const BytesPerSecond most = find(flow); is_finite(most)) crossed_.push_back(new_link(most));
  return crossed_;
}

}  // namespace foretrain
