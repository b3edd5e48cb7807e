#include "model/collectives/link_load.hpp"

#include <algorithm>

#include "model/base/number.hpp"

namespace foretrain {

Seconds LinkLoad::slowest_connection(const std::vector<Flow>& flows) const {
  Seconds slowest(0.0);
  const auto is_limited = [](const Flow& flow) { return is_finite(flow.most_rate); };
  if (!topology_.limits_connections() && std::ranges::none_of(flows, is_limited)) return slowest;
  for (const Flow& flow : merge_by_ends(flows)) {
    const BytesPerSecond most = std::min(flow.most_rate, topology_.most_rate(flow.source, flow.destination));
    slowest = std::max(slowest, flow.bytes / most);
  }
  return slowest;
}

void LinkLoad::add(const std::vector<Flow>& flows) {
  for (const Flow& flow : flows) {
    route_.clear();
    topology_.append_route(flow.source, flow.destination, route_);
    for (const LinkId link : route_) {
      if (at_index(link) >= load_.size()) load_.resize(at_index(link) + 1);
      if (load_[link] == Bytes(0.0)) links_.push_back(link);
      load_[link] += flow.bytes;
    }
    visit_cards(flow, route_, topology_, [&](LinkId card, double times) { load_[card] += flow.bytes * (times - 1.0); });
  }
}

void LinkLoad::clear() {
  for (const LinkId link : links_) load_[link] = Bytes(0.0);
  links_.clear();
}

Seconds LinkLoad::time_on(LinkId link) const {
  if (at_index(link) >= load_.size()) return Seconds(0.0);
  return load_[link] / topology_.link_bandwidth(link);
}

LinkLoad::Busiest LinkLoad::busiest_of(const std::vector<Flow>& flows) {
  Busiest busiest{slowest_connection(flows)};
  for (const Flow& flow : flows) {
    route_.clear();
    topology_.append_route(flow.source, flow.destination, route_);
    for (const LinkId link : route_) {
      if (at_index(link) >= load_.size() || !(load_[link] > Bytes(0.0))) continue;
      if (time_on(link) > busiest.time) busiest = {time_on(link), link};
    }
  }
  return busiest;
}

Seconds LinkLoad::busiest(const std::vector<Flow>& flows) {
  add(flows);
  const Seconds busiest = busiest_alone(flows);
  clear();
  return busiest;
}

Seconds LinkLoad::busiest_alone(const std::vector<Flow>& flows) const {
  Seconds busiest = slowest_connection(flows);
  for (const LinkId link : links_) {
    if (load_[link] > Bytes(0.0)) busiest = std::max(busiest, load_[link] / topology_.link_bandwidth(link));
  }
  return busiest;
}

}  // namespace foretrain
