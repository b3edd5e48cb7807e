#include "sim/network_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// Ratio of these bytes to those of other flows between the same ends; nothing if the ends differ.
std::optional<double> ratio(const std::vector<Flow>& flows, const std::vector<Flow>& others) {
  if (flows.size() != others.size() || flows.empty()) return std::nullopt;
  const double times = flows.front().bytes / others.front().bytes;
  const auto is_multiple = [times](const Flow& flow, const Flow& other) {
    return flow.source == other.source && flow.destination == other.destination && flow.weight == other.weight &&
           flow.message == other.message && flow.most_rate == other.most_rate &&
           std::abs(other.bytes * times / flow.bytes - 1.0) < 1e-13;
  };
  return std::ranges::equal(flows, others, is_multiple) ? std::optional(times) : std::nullopt;
}

std::uint64_t hash_of_ends(const std::vector<Flow>& flows) {
  if (flows.empty()) return 0;
  const Flow &first = flows.front(), &last = flows.back();
  return hash_of(flows.size(), first.source, first.destination, last.source, last.destination);
}

}  // namespace

std::optional<NetworkPlan::Amount> NetworkPlan::find(const std::vector<Flow>& flows) const {
  const auto [begin, end] = sets_between_.equal_range(hash_of_ends(flows));
  for (auto known = begin; known != end; ++known) {
    if (const auto times = ratio(flows, set(known->second).flows)) return Amount{known->second, *times};
  }
  return std::nullopt;
}

NetworkPlan::Amount NetworkPlan::add(const std::vector<Flow>& given) {
  if (const auto known = find(given)) return *known;
  std::vector<Flow> flows = given;
  std::erase_if(flows, [](const Flow& flow) { return flow.source == flow.destination || !(flow.bytes > Bytes(0.0)); });
  flows = merge_by_ends(std::move(flows));
  if (const auto known = find(flows)) return *known;
  const auto next = static_cast<SetIndex>(sets_.size());
  FlowSet set{std::move(flows), {}, {}};
  std::map<Bytes, std::int32_t> kind_of_size;  // classes tell weights apart themselves
  std::erase_if(set.flows, [&](const Flow& flow) {
    const std::vector<LinkIndex>& crossed = links_.of(flow);
    if (crossed.empty()) return true;
    load_.resize(links_.bandwidth().size());
    for (const LinkIndex link : crossed) {
      Bytes& load = load_[at_index(link)];
      if (load == Bytes(0.0)) set.links.push_back(link);
      load += flow.bytes;
    }
    const auto [kind, is_new] = kind_of_size.try_emplace(flow.bytes, static_cast<std::int32_t>(kinds_.size()));
    if (is_new) kinds_.push_back({next, flow.bytes});
    system_.add_flow(kind->second, crossed, flow.weight);
    return false;
  });
  for (const LinkIndex link : set.links) {
    set.uncontended = std::max(set.uncontended, load_[at_index(link)] / links_.bandwidth()[at_index(link)]);
    load_[at_index(link)] = Bytes(0.0);
  }
  sets_between_.emplace(hash_of_ends(set.flows), next);
  sets_.push_back(std::move(set));
  return {next, 1.0};
}

void NetworkPlan::complete() {
  system_.bandwidth = links_.bandwidth();
  // Colliding hashes would only have flows looked at that do not meet.
  std::vector<std::uint64_t> users(system_.links());
  for (const std::vector<LinkIndex>& crossed : background_) {
    system_.add_flow(static_cast<std::int32_t>(kinds_.size()), crossed);
    kinds_.emplace_back();
    for (const LinkIndex link : crossed) users[at_index(link)] = 1;
  }
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    for (const LinkIndex link : sets_[set].links) users[at_index(link)] = hash_of(users[at_index(link)], set);
  }
  std::unordered_map<std::uint64_t, LinkIndex> bundle_of_users;
  for (const std::uint64_t own : users) {
    const auto number = static_cast<LinkIndex>(bundle_of_users.size());
    bundle_of_link_.push_back(bundle_of_users.try_emplace(own, number).first->second);
  }
  bundles_ = bundle_of_users.size();
  std::vector<bool> named(bundles_);
  for (NetworkPlan::FlowSet& set : sets_) {
    std::vector<LinkIndex> bundles;
    for (const LinkIndex link : set.links) {
      const LinkIndex bundle = bundle_of_link_[at_index(link)];
      if (!named[at_index(bundle)]) bundles.push_back(bundle);
      named[at_index(bundle)] = true;
    }
    for (const LinkIndex bundle : bundles) named[at_index(bundle)] = false;
    set.links = std::move(bundles);
    set.flows = std::vector<Flow>();  // gives their memory back
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
