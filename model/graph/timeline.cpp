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
  return moved;
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

}  // namespace

std::vector<TimelineEntry> timeline_of(const TaskGraph& graph, const Execution& execution) {
  std::vector<TaskId> order;
  for (std::size_t task = 0; task < graph.tasks().size(); ++task) {
    const auto resource = static_cast<std::size_t>(graph.tasks()[task].resource);
    const bool works = graph.resources()[resource].kind != Resource::Kind::launch_path;
    if (works && execution.finish[task] > execution.start[task]) order.push_back(static_cast<TaskId>(task));
  }
  std::ranges::sort(order, {}, [&](TaskId task) {
    const auto t = static_cast<std::size_t>(task);
    return std::tuple(graph.tasks()[t].resource, execution.start[t].value(), task);
  });
  std::vector<std::size_t> entry_of(graph.tasks().size(), none);
  for (std::size_t i = 0; i < order.size(); ++i) entry_of[static_cast<std::size_t>(order[i])] = i;
  const std::vector<std::vector<std::size_t>> waits = waited_for(graph, entry_of);
  std::vector<TimelineEntry> timeline;
  timeline.reserve(order.size());
  for (const TaskId task : order) {
    const auto t = static_cast<std::size_t>(task);
    const Block& block = graph.block_of(task);
    const Resource& resource = graph.resource_of(task);
    TimelineEntry& entry = timeline.emplace_back();
    entry.resource = resource.name;
    entry.name = block.name;
    entry.start = execution.start[t];
    entry.duration = execution.finish[t] - execution.start[t];
    entry.micro_batch = graph.tasks()[t].micro_batch;
    entry.category = name(block.category);
    entry.lane = resource.lane;
    if (block.flows) {
      entry.algorithm = block.flows->chosen_algorithm;
      entry.moved = moved_by(*block.flows);
    }
    for (const std::size_t other : waits[t]) {
      if (graph.tasks()[static_cast<std::size_t>(order[other])].resource != graph.tasks()[t].resource) {
        entry.after.push_back(other);
      }
    }
  }
  return timeline;
}

}  // namespace foretrain
