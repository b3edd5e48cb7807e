#include "model/base/equitable_partition.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

using Vertex = ColouredGraph::Vertex;
using ClassId = std::int32_t;

/// A hash whose sums tell classes apart.
std::uint64_t mix(ClassId id) { return summable_hash(static_cast<std::uint64_t>(id)); }

/// Partition refinement. All members of a class had the same sum of hashes of their neighbours' classes when the class
/// was last looked at.
class Refinement {
 public:
  /// Counts the classes that `watched` vertices from `first` on are in.
  Refinement(const ColouredGraph& graph, const Neighbours& neighbours, std::size_t first, std::size_t watched)
      : neighbours_(neighbours), first_(first), watched_(watched) {
    begin_with_colours(graph.colour);
    for (std::size_t vertex = first; vertex < first + watched; ++vertex) join(static_cast<Vertex>(vertex));
  }
  [[nodiscard]] bool is_complete() const { return touched_.empty(); }
  [[nodiscard]] std::size_t watched_classes() const { return watched_classes_; }
  [[nodiscard]] const std::vector<ClassId>& classes() const { return class_of_; }

  /// A round: distinguishes what the last one has touched, and touches the neighbours of what it has distinguished.
  /// Taking the first half back ends the refinement.
  void split_touched() {
    const auto by_class = [&](Vertex node) { return class_of_[at_index(node)]; };
    // The first round touches all, class by class.
    if (!std::ranges::is_sorted(touched_, {}, by_class)) put_in_order(touched_);
    for (const Vertex node : touched_) is_touched_[at_index(node)] = false;
    for (auto from = touched_.begin(); from != touched_.end();) {
      const ClassId id = class_of_[at_index(*from)];
      const auto to = std::find_if(from, touched_.end(), [&](Vertex node) { return class_of_[at_index(node)] != id; });
      if (!is_uniform(id, std::span(from, to))) {
        put_in_order(std::span(from, to));
        split(id, std::span(from, to));
      }
      from = to;
    }
    touched_.clear();
  }
  void pass_on_changes() {
    for (const Change& change : changes_) {
      const std::uint64_t difference = mix(class_of_[at_index(change.node)]) - mix(change.before);
      for (const Vertex other : neighbours_.of(at_index(change.node))) {
        sum_[at_index(other)] += difference;
        touch(other);
      }
    }
    changes_.clear();
  }
  void take_back() {
    for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
      class_of_[at_index(change->node)] = change->before;
    }
  }

 private:
  struct Change {
    Vertex node;
    ClassId before;
  };

  /// By class, sum and number. Sorts values: indices into two arrays would miss the cache.
  void put_in_order(std::span<Vertex> nodes) {
    order_.clear();
    order_.reserve(nodes.size());
    for (const Vertex node : nodes) order_.emplace_back(class_of_[at_index(node)], sum_[at_index(node)], node);
    if (std::ranges::is_sorted(order_)) return;
    std::ranges::sort(order_);
    std::ranges::transform(order_, nodes.begin(), [](const auto& one) { return std::get<2>(one); });
  }

  void begin_with_colours(const std::vector<std::int32_t>& colour) {
    class_of_ = colour;
    size_.resize(colour.empty() ? 0 : 1 + at_index(*std::ranges::max_element(colour)));
    for (const ClassId id : colour) ++size_[at_index(id)];
    sum_.resize(colour.size());
    is_touched_.resize(colour.size(), true);
    touched_.resize(colour.size());
    // Class by class, counted: a stable order without comparisons.
    std::vector<std::size_t> next(size_.size());
    std::exclusive_scan(size_.begin(), size_.end(), next.begin(), std::size_t{0});
    for (std::size_t vertex = 0; vertex < colour.size(); ++vertex) {
      touched_[next[at_index(colour[vertex])]++] = static_cast<Vertex>(vertex);
      for (const Vertex other : neighbours_.of(vertex)) sum_[vertex] += mix(colour[at_index(other)]);
    }
  }

  void touch(Vertex node) {
    if (is_touched_[at_index(node)]) return;
    is_touched_[at_index(node)] = true;
    touched_.push_back(node);
  }

  /// Whether the class stays whole.
  [[nodiscard]] bool is_uniform(ClassId id, std::span<const Vertex> touched) const {
    const std::uint64_t sum = sum_[at_index(touched.front())];
    return touched.size() == size_[at_index(id)] &&
           std::ranges::all_of(touched, [&](Vertex node) { return sum_[at_index(node)] == sum; });
  }

  /// Each part of what is touched gets a class of its own, but the largest where nothing else is left of the class.
  void split(ClassId id, std::span<const Vertex> touched) {
    std::vector<std::span<const Vertex>> parts;
    for (std::size_t at = 0, end = 0; at < touched.size(); at = end) {
      while (end < touched.size() && sum_[at_index(touched[end])] == sum_[at_index(touched[at])]) ++end;
      parts.push_back(touched.subspan(at, end - at));
    }
    if (touched.size() == size_[at_index(id)]) {
      parts.erase(std::ranges::max_element(parts, {}, &std::span<const Vertex>::size));
    }
    for (const std::span<const Vertex> part : parts) {
      const auto fresh = static_cast<ClassId>(size_.size());
      size_[at_index(id)] -= part.size();
      size_.push_back(part.size());
      for (const Vertex node : part) {
        changes_.push_back({node, id});
        leave(node);
        class_of_[at_index(node)] = fresh;
        join(node);
      }
    }
  }

  [[nodiscard]] bool is_watched(Vertex node) const { return at_index(node) - first_ < watched_; }  // wraps below it
  void join(Vertex node) {
    if (!is_watched(node)) return;
    const std::size_t id = at_index(class_of_[at_index(node)]);
    if (watched_members_.size() <= id) watched_members_.resize(id + 1);
    if (watched_members_[id]++ == 0) ++watched_classes_;
  }
  void leave(Vertex node) {
    if (!is_watched(node)) return;
    if (--watched_members_[at_index(class_of_[at_index(node)])] == 0) --watched_classes_;
  }

  const Neighbours& neighbours_;
  std::size_t first_, watched_;
  std::vector<ClassId> class_of_;
  std::vector<std::size_t> watched_members_;  ///< by class
  std::size_t watched_classes_ = 0;
  std::vector<std::size_t> size_;  ///< of each class
  std::vector<std::uint64_t> sum_;
  std::vector<bool> is_touched_;
  std::vector<Vertex> touched_;
  std::vector<std::tuple<ClassId, std::uint64_t, Vertex>> order_;  ///< scratch of put_in_order()
  std::vector<Change> changes_;
};

std::vector<ClassId> in_order_of_first_members(std::vector<ClassId> of_vertex) {
  std::vector<ClassId> number(of_vertex.empty() ? 0 : 1 + at_index(*std::ranges::max_element(of_vertex)), -1);
  ClassId known = 0;
  for (ClassId& id : of_vertex) {
    if (number[at_index(id)] < 0) number[at_index(id)] = known++;
    id = number[at_index(id)];
  }
  return of_vertex;
}

}  // namespace

Neighbours::Neighbours(const ColouredGraph& graph)
    : first_(graph.colour.size() + 1), neighbour_(2 * graph.edges.size()) {
  for (const auto& [a, b] : graph.edges) ++first_[at_index(a) + 1], ++first_[at_index(b) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<std::size_t> next = first_;
  for (const auto& [a, b] : graph.edges) {
    neighbour_[next[at_index(a)]++] = b;
    neighbour_[next[at_index(b)]++] = a;
  }
}

Neighbours::Neighbours(std::size_t vertices, std::span<const std::size_t> first, Vertices listed)
    : first_(vertices + 1), neighbour_(listed.size()), at_listed_(first), listed_(listed) {
  for (const Vertex vertex : listed) ++first_[at_index(vertex) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<std::size_t> next = first_;
  for (std::size_t other = 0; other + 1 < first.size(); ++other) {
    for (std::size_t i = first[other]; i < first[other + 1]; ++i) {
      neighbour_[next[at_index(listed[i])]++] = static_cast<Vertex>(vertices + other);
    }
  }
}

std::vector<std::int32_t> coarsest_equitable_partition(const ColouredGraph& graph, const Neighbours& neighbours) {
  return limited_partition(graph, neighbours, 0, 0).class_of;
}

LimitedPartition limited_partition(const ColouredGraph& graph, const Neighbours& neighbours, std::size_t vertices,
                                   std::size_t classes, std::size_t first) {
  Refinement refinement(graph, neighbours, first, vertices);
  while (!refinement.is_complete()) {
    refinement.split_touched();
    if (refinement.watched_classes() > classes) {
      refinement.take_back();
      return {in_order_of_first_members(refinement.classes()), false};
    }
    refinement.pass_on_changes();
  }
  return {in_order_of_first_members(refinement.classes()), true};
}

}  // namespace foretrain
