#include "sim/network_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/collectives/link_load.hpp"

namespace foretrain {

namespace {

/// Links in bundles: those that each part() has named, or left, together.
class Bundles {
 public:
  explicit Bundles(std::size_t links) : of_link_(links) {}

  /// Every bundle of which some links are named becomes two.
  void part(const std::vector<LinkIndex>& named) {
    const auto first_new = static_cast<LinkIndex>(parted_into_.size());
    for (const LinkIndex link : named) {
      LinkIndex& bundle = of_link_[at_index(link)];
      if (bundle >= first_new) continue;  // a link named twice
      if (parted_into_[at_index(bundle)] < first_new) {
        parted_into_[at_index(bundle)] = static_cast<LinkIndex>(parted_into_.size());
        parted_into_.push_back(-1);
      }
      bundle = parted_into_[at_index(bundle)];
    }
  }

  /// The bundle of every link, numbered in the order of their first links, and how many there are.
  [[nodiscard]] std::pair<std::vector<LinkIndex>, std::size_t> numbered() const {
    std::vector<LinkIndex> number(parted_into_.size(), -1), of_link;
    LinkIndex next = 0;
    for (const LinkIndex bundle : of_link_) {
      if (number[at_index(bundle)] < 0) number[at_index(bundle)] = next++;
      of_link.push_back(number[at_index(bundle)]);
    }
    return {std::move(of_link), static_cast<std::size_t>(next)};
  }

 private:
  std::vector<LinkIndex> of_link_;
  std::vector<LinkIndex> parted_into_{-1};  ///< the bundle that the last links named have become
};

}  // namespace

NetworkPlan::NetworkPlan(const Topology& topology)
    : topology_(topology), link_index_(static_cast<std::size_t>(topology.links()), -1) {}

LinkIndex NetworkPlan::new_link(BytesPerSecond bandwidth) {
  if (!(bandwidth > BytesPerSecond(0.0))) {
    throw ImpossiblePlan(
        fmt::format("a flow crosses a link of {} byte/s, on which nothing can move", bandwidth.value()));
  }
  system_.bandwidth.push_back(bandwidth);
  load_.emplace_back();
  return static_cast<LinkIndex>(system_.links() - 1);
}

void NetworkPlan::find_links(EndpointId source, EndpointId destination) {
  route_.clear();
  crossed_.clear();
  topology_.append_route(source, destination, route_);
  for (const LinkId link : route_) {
    LinkIndex& known = link_index_[at_index(link)];
    if (known < 0) known = new_link(topology_.link_bandwidth(link));
    crossed_.push_back(known);
  }
}

BytesPerSecond NetworkPlan::most_rate_of(const Flow& flow) const {
  if (!topology_.limits_connections()) return flow.most_rate;
  return std::min(flow.most_rate, topology_.most_rate(flow.source, flow.destination));
}

void NetworkPlan::find_route(const Flow& flow) {
  find_links(flow.source, flow.destination);
  visit_cards(flow, route_, topology_, [&](LinkId card, double times) {
    const auto [held, is_new] = held_cards_.try_emplace({card, times}, 0);
    if (is_new) held->second = new_link(topology_.link_bandwidth(card) / times);
    crossed_.push_back(held->second);
  });
  const BytesPerSecond most_rate = most_rate_of(flow);
  if (!is_finite(most_rate)) return;
  const auto [limit, is_new] = connection_limit_.try_emplace({flow.source, flow.destination, most_rate}, 0);
  if (is_new) limit->second = new_link(most_rate);
  crossed_.push_back(limit->second);
}

SetIndex NetworkPlan::add_set(std::vector<Flow> flows) {
  std::erase_if(flows, [](const Flow& flow) { return flow.source == flow.destination || !(flow.bytes > Bytes(0.0)); });
  NetworkPlan::FlowSet set;
  set.flows = merge_by_ends(std::move(flows));
  std::map<Bytes, std::int32_t> kind_of_size;  // classes tell weights apart themselves
  std::erase_if(set.flows, [&](const Flow& flow) {
    find_route(flow);
    if (crossed_.empty()) return true;
    for (const LinkIndex link : crossed_) {
      Bytes& load = load_[static_cast<std::size_t>(link)];
      if (load == Bytes(0.0)) set.links.push_back(link);
      load += flow.bytes;
    }
    const auto [kind, is_new] = kind_of_size.try_emplace(flow.bytes, kinds_);
    if (is_new) ++kinds_;
    system_.add_flow(kind->second, crossed_, flow.weight);
    return false;
  });
  for (const LinkIndex link : set.links) {
    Bytes& load = load_[static_cast<std::size_t>(link)];
    set.uncontended = std::max(set.uncontended, load / system_.bandwidth[static_cast<std::size_t>(link)]);
    load = Bytes(0.0);
  }
  sets_.push_back(std::move(set));
  return static_cast<SetIndex>(sets_.size() - 1);
}

void NetworkPlan::add_background(const BackgroundFlow::Route& route) {
  find_links(route.source, route.destination);
  const BytesPerSecond rate = std::min(route.rate, topology_.most_rate(route.source, route.destination));
  if (is_finite(rate)) crossed_.push_back(new_link(rate));
  background_.push_back(crossed_);
}

void NetworkPlan::complete() {
  for (const std::vector<LinkIndex>& crossed : background_) system_.add_flow(kinds_++, crossed);
  Bundles bundled(system_.links());
  for (const FlowSet& set : sets_) bundled.part(set.links);
  std::vector<LinkIndex> crossed_by_others;
  for (const std::vector<LinkIndex>& crossed : background_) {
    crossed_by_others.insert(crossed_by_others.end(), crossed.begin(), crossed.end());
  }
  bundled.part(crossed_by_others);
  std::tie(bundle_of_link_, bundles_) = bundled.numbered();
  std::vector<bool> named(bundles_);
  for (NetworkPlan::FlowSet& set : sets_) {
    std::vector<LinkIndex> bundles;
    for (const LinkIndex link : set.links) {
      const LinkIndex bundle = bundle_of_link_[static_cast<std::size_t>(link)];
      if (!named[static_cast<std::size_t>(bundle)]) bundles.push_back(bundle);
      named[static_cast<std::size_t>(bundle)] = true;
    }
    for (const LinkIndex bundle : bundles) named[static_cast<std::size_t>(bundle)] = false;
    set.links = std::move(bundles);
  }
}

std::vector<LinkIndex> NetworkPlan::background_bundles() const {
  std::vector<LinkIndex> bundles;
  for (const std::vector<LinkIndex>& crossed : background_) {
    for (const LinkIndex link : crossed) bundles.push_back(bundle_of_link_[at_index(link)]);
  }
  return bundles;
}

}  // namespace foretrain
