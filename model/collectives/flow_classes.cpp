#include "model/collectives/flow_classes.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

using Vertex = std::int32_t;  ///< flows first, then links
using ClassId = std::int32_t;

/// A hash whose sums tell classes apart.
std::uint64_t mix(ClassId id) {
  std::uint64_t state = static_cast<std::uint64_t>(id) * split_mix_step;
  return split_mix(state);
}

/// Who is joined with whom, both ways.
class Neighbours {
 public:
  explicit Neighbours(const SharingSystem& system) : system_(system), first_(system.links() + 1) {
    for (const std::int32_t link : system.link) ++first_[at_index(link) + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    flow_.resize(system.link.size());
    std::vector<std::size_t> next = first_;
    for (std::size_t flow = 0; flow < system.flows(); ++flow) {
      for (const std::int32_t link : system.links_of(flow)) flow_[next[at_index(link)]++] = static_cast<Vertex>(flow);
    }
  }
  [[nodiscard]] std::span<const Vertex> flows_of(std::size_t link) const {
    return std::span(flow_).subspan(first_[link], first_[link + 1] - first_[link]);
  }
  /// Calls visit(neighbour) once per crossing.
  template <typename Visit>
  void visit(Vertex node, const Visit& visit) const {
    const auto flows = static_cast<Vertex>(system_.flows());
    if (node < flows) {
      for (const std::int32_t link : system_.links_of(at_index(node))) visit(flows + link);
    } else {
      for (const Vertex flow : flows_of(at_index(node - flows))) visit(flow);
    }
  }

 private:
  const SharingSystem& system_;
  std::vector<std::size_t> first_;
  std::vector<Vertex> flow_;
};

/// Partition refinement. The members of a class are consecutive in `order_`; all of them had the same sum of hashes of
/// their neighbours' classes when the class was last looked at.
class Refinement {
 public:
  Refinement(const SharingSystem& system, const Neighbours& neighbours)
      : neighbours_(neighbours), class_of_(system.flows() + system.links()) {
    begin_with_kinds(system);
    while (!touched_.empty()) {
      split_touched();
      pass_on_changes();
    }
  }
  [[nodiscard]] ClassId class_of(std::size_t node) const { return class_of_[node]; }

 private:
  struct Change {
    Vertex node;
    ClassId before;
  };

  void begin_with_kinds(const SharingSystem& system) {
    const std::size_t flows = system.flows();
    order_.resize(class_of_.size());
    std::iota(order_.begin(), order_.end(), 0);
    const auto rank = [&](Vertex node) {
      return at_index(node) < flows ? std::pair(0, static_cast<double>(system.kind[at_index(node)]))
                                    : std::pair(1, system.bandwidth[at_index(node) - flows].value());
    };
    std::stable_sort(order_.begin(), order_.end(), [&](Vertex a, Vertex b) { return rank(a) < rank(b); });
    position_.resize(order_.size());
    for (std::size_t at = 0; at < order_.size(); ++at) {
      if (at == 0 || rank(order_[at - 1]) < rank(order_[at])) begin_.push_back(at), end_.push_back(at);
      ++end_.back();
      position_[at_index(order_[at])] = at;
      class_of_[at_index(order_[at])] = static_cast<ClassId>(begin_.size() - 1);
    }
    sum_.resize(order_.size());
    is_touched_.resize(order_.size());
    for (const Vertex node : order_) {
      neighbours_.visit(node, [&](Vertex other) { sum_[at_index(node)] += mix(class_of_[at_index(other)]); });
      touch(node);
    }
  }

  void touch(Vertex node) {
    if (is_touched_[at_index(node)]) return;
    is_touched_[at_index(node)] = true;
    touched_.push_back(node);
  }

  void split_touched() {
    std::sort(touched_.begin(), touched_.end(), [&](Vertex a, Vertex b) {
      return std::tuple(class_of_[at_index(a)], sum_[at_index(a)], a) <
             std::tuple(class_of_[at_index(b)], sum_[at_index(b)], b);
    });
    for (const Vertex node : touched_) is_touched_[at_index(node)] = false;
    for (auto from = touched_.begin(); from != touched_.end();) {
      const ClassId id = class_of_[at_index(*from)];
      const auto to = std::find_if(from, touched_.end(), [&](Vertex node) { return class_of_[at_index(node)] != id; });
      split(id, std::span(from, to));
      from = to;
    }
    touched_.clear();
  }

  /// Every part but the largest gets a class of its own, so that each node changes its class O(log n) times.
  void split(ClassId id, std::span<const Vertex> touched) {
    const auto same_sum_end = [&](std::size_t at) {
      std::size_t end = at;
      while (end < touched.size() && sum_[at_index(touched[end])] == sum_[at_index(touched[at])]) ++end;
      return end;
    };
    const std::size_t untouched = end_[at_index(id)] - begin_[at_index(id)] - touched.size();
    std::size_t largest = touched.size(), largest_size = untouched;  // `largest` begins a part of `touched`
    for (std::size_t at = 0; at < touched.size(); at = same_sum_end(at)) {
      if (same_sum_end(at) - at > largest_size) largest = at, largest_size = same_sum_end(at) - at;
    }
    for (std::size_t at = 0; at < touched.size();) {
      const std::size_t end = same_sum_end(at);
      if (at != largest) move_out(id, touched.subspan(at, end - at));
      at = end;
    }
    if (largest == touched.size() || untouched == 0) return;
    std::vector<Vertex> rest;
    for (std::size_t at = begin_[at_index(id)]; at < end_[at_index(id)]; ++at) {
      if (sum_[at_index(order_[at])] != sum_[at_index(touched[largest])]) rest.push_back(order_[at]);
    }
    move_out(id, rest);
  }

  void move_out(ClassId id, std::span<const Vertex> part) {
    std::size_t end = end_[at_index(id)];
    const auto fresh = static_cast<ClassId>(begin_.size());
    for (const Vertex node : part) {
      --end;
      const Vertex other = order_[end];
      std::swap(order_[end], order_[position_[at_index(node)]]);
      std::swap(position_[at_index(node)], position_[at_index(other)]);
      changes_.push_back({node, id});
      class_of_[at_index(node)] = fresh;
    }
    begin_.push_back(end);
    end_.push_back(end_[at_index(id)]);
    end_[at_index(id)] = end;
  }

  void pass_on_changes() {
    for (const Change& change : changes_) {
      const std::uint64_t difference = mix(class_of_[at_index(change.node)]) - mix(change.before);
      neighbours_.visit(change.node, [&](Vertex other) {
        sum_[at_index(other)] += difference;
        touch(other);
      });
    }
    changes_.clear();
  }

  const Neighbours& neighbours_;
  std::vector<ClassId> class_of_;
  std::vector<std::size_t> begin_, end_;  ///< of each class, in order_
  std::vector<Vertex> order_;
  std::vector<std::size_t> position_;
  std::vector<std::uint64_t> sum_;
  std::vector<bool> is_touched_;
  std::vector<Vertex> touched_;
  std::vector<Change> changes_;
};

/// Numbers classes by first members. Returns each node's number and the first member of each.
template <typename ClassOf>
std::pair<std::vector<std::int32_t>, std::vector<std::size_t>> renumber(std::size_t nodes, const ClassOf& class_of,
                                                                        std::size_t classes) {
  std::vector<std::int32_t> number(classes, -1), of_node(nodes);
  std::vector<std::size_t> first;
  for (std::size_t node = 0; node < nodes; ++node) {
    std::int32_t& known = number[at_index(class_of(node))];
    if (known < 0) {
      known = static_cast<std::int32_t>(first.size());
      first.push_back(node);
    }
    of_node[node] = known;
  }
  return {std::move(of_node), std::move(first)};
}

}  // namespace

void SharingSystem::add_flow(std::int32_t kind_of_flow, std::span<const std::int32_t> links_crossed) {
  kind.push_back(kind_of_flow);
  link.insert(link.end(), links_crossed.begin(), links_crossed.end());
  first_crossing.push_back(link.size());
}

SharingSystem::Folded fold(const SharingSystem& system) {
  const Neighbours neighbours(system);
  const Refinement refinement(system, neighbours);
  const std::size_t flows = system.flows(), nodes = flows + system.links();
  auto [flow_class, first_flow] = renumber(
      flows, [&](std::size_t flow) { return refinement.class_of(flow); }, nodes);
  const auto [link_class, first_link] = renumber(
      system.links(), [&](std::size_t link) { return refinement.class_of(flows + link); }, nodes);

  SharingSystem::Folded folded;
  folded.crossings.resize(first_flow.size());
  folded.class_of_flow = std::move(flow_class);
  std::vector<std::int32_t> count(first_flow.size());
  for (std::size_t id = 0; id < first_link.size(); ++id) {
    std::vector<std::int32_t> crossing;
    for (const Vertex flow : neighbours.flows_of(first_link[id])) {
      const std::int32_t of_flow = folded.class_of_flow[at_index(flow)];
      if (count[at_index(of_flow)]++ == 0) crossing.push_back(of_flow);
    }
    std::int32_t divisor = 0;
    for (const std::int32_t of_flow : crossing) divisor = std::gcd(divisor, count[at_index(of_flow)]);
    for (const std::int32_t of_flow : crossing) {
      folded.crossings[at_index(of_flow)].push_back(
          {static_cast<std::int32_t>(id), count[at_index(of_flow)] / divisor});
      count[at_index(of_flow)] = 0;
    }
    folded.bandwidth.push_back(system.bandwidth[first_link[id]] / std::max(divisor, 1));
  }
  return folded;
}

SharingSystem::Folded keep_apart(const SharingSystem& system) {
  SharingSystem::Folded folded{system.bandwidth, std::vector<std::int32_t>(system.flows()), {}};
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

std::vector<BytesPerSecond> max_min_rates(const SharingSystem::Folded& system, const std::vector<bool>& active) {
  std::vector<BytesPerSecond> rates(system.classes());
  std::vector<BytesPerSecond> free = system.bandwidth;
  std::vector<double> growing(free.size());  // flows on each link whose rate is not settled
  std::vector<std::vector<std::int32_t>> classes_on(free.size());
  std::vector<bool> settled(system.classes(), true);
  for (std::size_t id = 0; id < system.classes(); ++id) {
    if (!active[id]) continue;
    if (system.crossings[id].empty()) {
      rates[id] = BytesPerSecond::infinity();
      continue;
    }
    settled[id] = false;
    for (const SharingSystem::Folded::Crossing& crossing : system.crossings[id]) {
      growing[at_index(crossing.link)] += crossing.flows;
      classes_on[at_index(crossing.link)].push_back(static_cast<std::int32_t>(id));
    }
  }
  for (;;) {
    BytesPerSecond share = BytesPerSecond::infinity();
    std::size_t fullest = free.size();
    for (std::size_t link = 0; link < free.size(); ++link) {
      if (growing[link] < 0.5 || free[link] / growing[link] >= share) continue;
      share = free[link] / growing[link];
      fullest = link;
    }
    if (fullest == free.size()) return rates;
    for (const std::int32_t id : classes_on[fullest]) {
      if (settled[at_index(id)]) continue;
      settled[at_index(id)] = true;
      rates[at_index(id)] = share;
      for (const SharingSystem::Folded::Crossing& crossing : system.crossings[at_index(id)]) {
        growing[at_index(crossing.link)] -= crossing.flows;
        free[at_index(crossing.link)] =
            std::max(free[at_index(crossing.link)] - share * static_cast<double>(crossing.flows), BytesPerSecond(0.0));
      }
    }
  }
}

}  // namespace foretrain
