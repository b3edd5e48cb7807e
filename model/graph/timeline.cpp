#include "model/graph/timeline.hpp"

#include <algorithm>
#include <tuple>

#include "model/base/words.hpp"

namespace foretrain {

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
  std::vector<TimelineEntry> timeline;
  timeline.reserve(order.size());
  for (const TaskId task : order) {
    const auto t = static_cast<std::size_t>(task);
    const Block& block = graph.block_of(task);
    timeline.push_back({graph.resources()[static_cast<std::size_t>(graph.tasks()[t].resource)].name, block.name,
                        execution.start[t], execution.finish[t] - execution.start[t], graph.tasks()[t].micro_batch,
                        std::string(name(block.category))});
  }
  return timeline;
}

}  // namespace foretrain
