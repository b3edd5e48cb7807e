#include "model/graph/timeline.hpp"

#include <algorithm>
#include <tuple>

#include "model/base/words.hpp"

namespace foretrain {

namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

Bytes moved_by(const LoweredCollective& lowered) {
  Bytes moved;
  for (const LoweredCollective::Phase& phase : lowered.phases) {
    for (const Flow& flow : phase.flows) moved += flow.bytes * static_cast<double>(phase.repeat);
  }
  return moved * lowered.times;
}

/// By task: the entries that it waited for, on other resources; tasks without an entry of their own hand on what they
/// waited for.
std::vector<std::vector<std::size_t>> waited_for(const TaskGraph& graph, const std::vector<std::size_t>& entry_of) {
  std::vector<std::vector<std::size_t>> waits(graph.tasks().size());
  for (std::size_t task = 0; task < waits.size(); ++task) {
    std::ranges::sort(waits[task]);
    waits[task].erase(std::unique(waits[task].begin(), waits[task].end()), waits[task].end());
    for (const TaskId next : graph.successors(static_cast<TaskId>(task))) {
      std::vector<std::size_t>& of_next = waits[static_cast<std::size_t>(next)];
      if (entry_of[task] == none) {
        of_next.insert(of_next.end(), waits[task].begin(), waits[task].end());
      } else {
        of_next.push_back(entry_of[task]);
      }
    }
  }
  return waits;
}

/// A part of a task's time, or what runs beside it. Resources from the graph's number on are those of `beside`.
struct Bar {
  TaskId task;
  std::size_t resource;
  Seconds start, end;
  const char* name = nullptr;  ///< nothing: its block's
  Category category = Category::compute;
};

/// The tasks' bars. Draws a pass with collectives that are no tasks as its kernels, then the collectives together, with
/// those that kernels hide beside their end. The place of each one is unknown.
class Bars {
 public:
  Bars(const TaskGraph& graph, const Execution& execution) : graph_(graph) {
    for (std::size_t i = 0; i < graph.resources().size(); ++i) names_.push_back(graph.resources()[i].name);
    for (std::size_t task = 0; task < graph.tasks().size(); ++task) {
      const Seconds start = execution.start[task], end = execution.finish[task];
      const auto id = static_cast<TaskId>(task);
      if (graph.resource_of(id).kind != Resource::Kind::launch_path && end > start) add(id, start, end);
    }
    std::ranges::stable_sort(bars_, {}, [&](const Bar& bar) { return std::tuple(bar.resource, bar.start.value()); });
  }

  [[nodiscard]] const std::vector<Bar>& all() const { return bars_; }
  [[nodiscard]] const std::string& resource(const Bar& bar) const { return names_[bar.resource]; }

 private:
  void add(TaskId task, Seconds start, Seconds end) {
    const auto own = static_cast<std::size_t>(graph_.tasks()[static_cast<std::size_t>(task)].resource);
    const Block& block = graph_.block_of(task);
    if (block.inside == Inside{}) return bars_.push_back({task, own, start, end, nullptr, block.category});
    // An execution for real takes as long as it takes.
    const Inside inside = block.inside * (block.uncontended > Seconds(0.0) ? (end - start) / block.uncontended : 0.0);
    const auto bar = [&](std::size_t resource, Seconds from, Seconds to, const char* name, Category category) {
      if (to - from > 1e-12 * to) bars_.push_back({task, resource, from, to, name, category});
    };
    const Seconds kernels = start + (end - start - inside.exposed - inside.exposed_copies - inside.host);
    const Seconds moved = kernels + inside.exposed, copied = moved + inside.exposed_copies;
    // Dispatching that a task of its own follows is seen where it outlasts kernels alone.
    if (block.category != Category::host) bar(own, start, kernels, nullptr, block.category);
    bar(beside(own, " inside layers"), kernels - inside.hidden, moved, inside_layers, Category::communication);
    bar(beside(own, " copies"), moved - inside.hidden_copies, copied, copies_of_offloading, Category::communication);
    if (inside.host > Seconds(0.0)) bar(own, copied, end, "dispatch", Category::host);
  }

  /// The stream of that name beside a compute stream, as the graph calls it where it has one.
  std::size_t beside(std::size_t compute, std::string_view what) {
    std::string name = names_[compute];
    if (constexpr std::string_view own = " compute"; name.ends_with(own)) name.resize(name.size() - own.size());
    name += what;
    const auto known = std::ranges::find(names_, name);
    if (known == names_.end()) return names_.push_back(name), names_.size() - 1;
    return static_cast<std::size_t>(known - names_.begin());
  }

  const TaskGraph& graph_;
  std::vector<std::string> names_;  ///< of resources
  std::vector<Bar> bars_;
};

}  // namespace

std::vector<TimelineEntry> timeline_of(const TaskGraph& graph, const Execution& execution) {
  const Bars bars(graph, execution);
  std::vector<std::size_t> first(graph.tasks().size(), none), last = first;  // a task's bars
  for (std::size_t i = 0; i < bars.all().size(); ++i) {
    const Bar& bar = bars.all()[i];
    const auto task = static_cast<std::size_t>(bar.task);
    if (first[task] == none) first[task] = i;
    if (last[task] == none || bar.end > bars.all()[last[task]].end) last[task] = i;
  }
  const std::vector<std::vector<std::size_t>> waits = waited_for(graph, last);
  std::vector<TimelineEntry> timeline;
  timeline.reserve(bars.all().size());
  for (const Bar& bar : bars.all()) {
    const auto task = static_cast<std::size_t>(bar.task);
    const Block& block = graph.block_of(bar.task);
    TimelineEntry& entry = timeline.emplace_back();
    entry.resource = bars.resource(bar);
    entry.name = bar.name != nullptr ? bar.name : block.name;
    entry.start = bar.start;
    entry.duration = bar.end - bar.start;
    entry.micro_batch = graph.tasks()[task].micro_batch;
    entry.category = name(bar.category);
    entry.rank_class = graph.resource_of(bar.task).rank_class;
    if (block.flows) {
      entry.algorithm = block.flows->chosen_algorithm;
      entry.moved = moved_by(*block.flows);
    }
    if (timeline.size() - 1 != first[task]) continue;
    for (const std::size_t other : waits[task]) {
      if (bars.all()[other].resource != bar.resource) entry.after.push_back(other);
    }
  }
  return timeline;
}

}  // namespace foretrain
