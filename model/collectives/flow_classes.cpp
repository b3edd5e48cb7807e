#include "model/collectives/flow_classes.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "model/base/equitable_partition.hpp"
#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"

namespace foretrain {

namespace {

/// Of links, by bandwidth, then of flows, by kind and weight: a graph whose edges are the crossings.
std::vector<std::int32_t> colours_of(const SharingSystem& system) {
  const auto kind_of = [&](std::size_t flow) { return std::pair(system.kind[flow], system.weight[flow]); };
  std::vector<std::pair<std::int32_t, double>> kinds;  // those of neighbours are the same
  for (std::size_t flow = 0; flow < system.flows(); ++flow) {
    if (kinds.empty() || kinds.back() != kind_of(flow)) kinds.push_back(kind_of(flow));
  }
  std::ranges::sort(kinds);
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  std::vector<BytesPerSecond> bandwidths = system.bandwidth;
  std::ranges::sort(bandwidths);
  bandwidths.erase(std::unique(bandwidths.begin(), bandwidths.end()), bandwidths.end());
  const auto place = [](const auto& sorted, const auto& value) {
    return static_cast<std::int32_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
  };
  std::vector<std::int32_t> colours;
  colours.reserve(system.links() + system.flows());
  for (const BytesPerSecond bandwidth : system.bandwidth) colours.push_back(place(bandwidths, bandwidth));
  const auto of_links = static_cast<std::int32_t>(bandwidths.size());
  for (std::size_t flow = 0; flow < system.flows(); ++flow) colours.push_back(of_links + place(kinds, kind_of(flow)));
  return colours;
}

/// Some of a graph's vertices in classes of their own numbers.
struct Classes {
  std::vector<std::int32_t> of_vertex;       ///< numbered by first members
  std::vector<std::size_t> representatives;  ///< of each class: a vertex, counted from the first of these
};

/// The vertices from `from` to `to`. The representative is the first of those whose neighbours' classes are the most
/// common ones; in a complete partition all have the same.
Classes classes_between(const std::vector<std::int32_t>& class_of, const Neighbours& neighbours, std::size_t from,
                        std::size_t to) {
  Classes classes;
  std::vector<std::int32_t> number(class_of.size(), -1);
  struct Alike {
    std::size_t members = 0, first = 0;
  };
  std::vector<std::map<std::uint64_t, Alike>> seen;  // by class and what the neighbours add up to
  for (std::size_t vertex = from; vertex < to; ++vertex) {
    std::int32_t& known = number[at_index(class_of[vertex])];
    if (known < 0) {
      known = static_cast<std::int32_t>(seen.size());
      seen.emplace_back();
    }
    classes.of_vertex.push_back(known);
    std::uint64_t sum = 0;
    for (const ColouredGraph::Vertex other : neighbours.of(vertex)) {
      sum += summable_hash(static_cast<std::uint64_t>(class_of[at_index(other)]));
    }
    const auto [alike, is_new] = seen[at_index(known)].try_emplace(sum, Alike{0, vertex - from});
    ++alike->second.members;
  }
  for (const std::map<std::uint64_t, Alike>& of_class : seen) {
    const auto rank = [](const auto& entry) {
      return std::pair(entry.second.members, -static_cast<std::ptrdiff_t>(entry.second.first));
    };
    classes.representatives.push_back(std::ranges::max_element(of_class, {}, rank)->second.first);
  }
  return classes;
}

}  // namespace

void SharingSystem::add_flow(std::int32_t kind_of_flow, std::span<const std::int32_t> links_crossed,
                             double weight_of_flow) {
  kind.push_back(kind_of_flow);
  weight.push_back(weight_of_flow);
  link.insert(link.end(), links_crossed.begin(), links_crossed.end());
  first_crossing.push_back(link.size());
}

namespace {

/// The classes of a system's graph, whatever the bandwidths and weights: links of a class share a bandwidth that is
/// divided, flows a weight.
struct FoldedGraph {
  struct LinkClass {
    std::size_t representative = 0;
    std::int32_t divisor = 1;
  };
  SharingSystem::Folded folded;  ///< without bandwidths and weights
  std::vector<LinkClass> links;
  std::vector<std::size_t> flows;  ///< of each class: a representative
};

FoldedGraph fold_graph(const SharingSystem& system, const ColouredGraph& graph, std::size_t most_classes) {
  const Neighbours neighbours(system.links(), system.first_crossing, system.link);
  const std::vector<std::int32_t> class_of =
      limited_partition(graph, neighbours, system.flows(), most_classes, system.links()).class_of;
  Classes flows = classes_between(class_of, neighbours, system.links(), class_of.size());
  const Classes links = classes_between(class_of, neighbours, 0, system.links());

  FoldedGraph result;
  SharingSystem::Folded& folded = result.folded;
  folded.crossings.resize(flows.representatives.size());
  folded.class_of_flow = std::move(flows.of_vertex);
  const auto class_of_flow = [&](ColouredGraph::Vertex flow) {
    return folded.class_of_flow[at_index(flow) - system.links()];
  };
  std::vector<std::int32_t> count(flows.representatives.size());
  for (std::size_t id = 0; id < links.representatives.size(); ++id) {
    const auto crosses = [&](std::int32_t of_flow) {
      return std::ranges::any_of(system.links_of(flows.representatives[at_index(of_flow)]), [&](std::int32_t link) {
        return links.of_vertex[at_index(link)] == static_cast<std::int32_t>(id);
      });
    };
    std::vector<std::int32_t> crossing;
    for (const ColouredGraph::Vertex flow : neighbours.of(links.representatives[id])) {
      const std::int32_t of_flow = class_of_flow(flow);
      if (count[at_index(of_flow)]++ == 0 && crosses(of_flow)) crossing.push_back(of_flow);
    }
    std::int32_t divisor = 0;
    for (const std::int32_t of_flow : crossing) divisor = std::gcd(divisor, count[at_index(of_flow)]);
    for (const std::int32_t of_flow : crossing) {
      folded.crossings[at_index(of_flow)].push_back(
          {static_cast<std::int32_t>(id), count[at_index(of_flow)] / divisor});
    }
    for (const ColouredGraph::Vertex flow : neighbours.of(links.representatives[id])) {
      count[at_index(class_of_flow(flow))] = 0;
    }
    result.links.push_back({links.representatives[id], std::max(divisor, 1)});
  }
  // If the limit cut the partition short, links that stand for others may be crossed by none of a class's flows.
  for (std::size_t of_flow = 0; of_flow < folded.crossings.size(); ++of_flow) {
    if (folded.crossings[of_flow].empty() && !system.links_of(flows.representatives[of_flow]).empty()) {
      throw UsageError("the simulation has too many flows of which no two are alike; use --fidelity estimate");
    }
  }
  result.flows = std::move(flows.representatives);
  return result;
}

struct FoldKey {
  using Value = const FoldedGraph;
  std::uint64_t own_hash;
  std::size_t most_classes;
  std::vector<std::int32_t> colour;
  std::vector<std::size_t> first_crossing;
  std::vector<std::int32_t> link;

  bool operator==(const FoldKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return own_hash; }
  [[nodiscard]] std::size_t bytes(const FoldedGraph&) const { return 16 * colour.size() + 4 * link.size(); }
};

}  // namespace

SharingSystem::Folded fold(const SharingSystem& system, std::size_t most_classes) {
  ColouredGraph graph{colours_of(system)};
  const std::uint64_t hash = hash_of(most_classes, graph.colour, system.link);
  auto known = session().find<FoldKey>(hash, [&](const FoldKey& key) {
    return key.most_classes == most_classes && key.colour == graph.colour && key.link == system.link &&
           key.first_crossing == system.first_crossing;
  });
  if (known == nullptr) {
    FoldedGraph fresh = fold_graph(system, graph, most_classes);
    FoldKey key{hash, most_classes, std::move(graph.colour), system.first_crossing, system.link};
    known = session().keep(std::move(key), std::move(fresh));
  }
  SharingSystem::Folded folded = known->folded;
  for (const FoldedGraph::LinkClass& link : known->links) {
    folded.bandwidth.push_back(system.bandwidth[link.representative] / link.divisor);
  }
  for (const std::size_t flow : known->flows) folded.weight.push_back(system.weight[flow]);
  return folded;
}

SharingSystem::Folded keep_apart(const SharingSystem& system) {
  SharingSystem::Folded folded{system.bandwidth, std::vector<std::int32_t>(system.flows()), {}, system.weight};
  std::iota(folded.class_of_flow.begin(), folded.class_of_flow.end(), 0);
  for (std::size_t flow = 0; flow < system.flows(); ++flow) {
    std::vector<SharingSystem::Folded::Crossing>& own = folded.crossings.emplace_back();
    for (const std::int32_t link : system.links_of(flow)) {
      const auto known = std::ranges::find(own, link, &SharingSystem::Folded::Crossing::link);
      if (known == own.end()) {
        own.push_back({link, 1});
      } else {
        ++known->flows;
      }
    }
  }
  return folded;
}

MaxMinRates::MaxMinRates(const SharingSystem::Folded& system)
    : system_(system), links_(system.bandwidth.size()), first_user_(links_.size() + 1) {
  for (const auto& crossed : system.crossings) {
    for (const auto [link, flows] : crossed) ++first_user_[at_index(link) + 1];
  }
  std::partial_sum(first_user_.begin(), first_user_.end(), first_user_.begin());
  users_.resize(first_user_.back());
  std::vector<std::size_t> next = first_user_;
  for (std::size_t id = 0; id < system.classes(); ++id) {
    for (const auto [link, flows] : system.crossings[id]) {
      users_[next[at_index(link)]++] = static_cast<std::int32_t>(id);
    }
  }
}

void MaxMinRates::start(const std::vector<bool>& active) {
  rates_.assign(system_.classes(), {});
  settled_.assign(system_.classes(), true);
  unsettled_ = 0;
  for (std::size_t link = 0; link < links_.size(); ++link) links_[link] = {system_.bandwidth[link]};
  for (std::size_t id = 0; id < system_.classes(); ++id) {
    if (!active[id]) continue;
    if (system_.crossings[id].empty()) rates_[id] = BytesPerSecond::infinity();
    settled_[id] = system_.crossings[id].empty();
    unsettled_ += settled_[id] ? 0 : 1;
    for (const auto [link, flows] : system_.crossings[id]) {
      links_[at_index(link)].growing += flows * system_.weight[id];
      ++links_[at_index(link)].unsettled;
    }
  }
}

const std::vector<BytesPerSecond>& MaxMinRates::of(const std::vector<bool>& active) {
  const auto later = [](const Share& a, const Share& b) {
    return a.share == b.share ? a.link > b.link : a.share > b.share;
  };
  start(active);
  shares_.clear();
  for (std::size_t link = 0; link < links_.size(); ++link) {
    if (links_[link].unsettled > 0) shares_.push_back({links_[link].share().value(), link});
  }
  std::ranges::make_heap(shares_, later);
  while (unsettled_ > 0) {
    std::ranges::pop_heap(shares_, later);
    auto& [known, fullest] = shares_.back();
    const bool any = links_[fullest].unsettled > 0;
    const double share = any ? links_[fullest].share().value() : known;
    if (share > known) {  // a share only grows while others settle
      known = share;
      std::ranges::push_heap(shares_, later);
      continue;
    }
    if (any) settle(fullest, BytesPerSecond(share));
    shares_.pop_back();
  }
  return rates_;
}

void MaxMinRates::settle(std::size_t fullest, BytesPerSecond share) {
  for (std::size_t user = first_user_[fullest]; user < first_user_[fullest + 1]; ++user) {
    const std::size_t id = at_index(users_[user]);
    if (settled_[id]) continue;
    settled_[id] = true;
    --unsettled_;
    rates_[id] = share * system_.weight[id];
    for (const auto [link, flows] : system_.crossings[id]) {
      Link& crossed = links_[at_index(link)];
      const double weight = flows * system_.weight[id];
      crossed.growing -= weight;
      --crossed.unsettled;
      crossed.free = std::max(crossed.free - share * weight, BytesPerSecond(0.0));
    }
  }
}

}  // namespace foretrain
