// Which ranks are late, and whom they delay.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "model/base/number.hpp"
#include "reports/explain/link_use.hpp"

namespace foretrain {

namespace {

constexpr TaskId none = -1;

/// By task: the one whose end it waited for longest, beside what ran before it on its resource.
std::vector<TaskId> last_causes(const TaskGraph& graph, const Execution& execution) {
  std::vector<TaskId> causes(graph.tasks().size(), none);
  for (std::size_t task = 0; task < causes.size(); ++task) {
    for (const TaskId next : graph.successors(static_cast<TaskId>(task))) {
      TaskId& cause = causes[at_index(next)];
      if (cause == none || execution.finish[task] > execution.finish[at_index(cause)])
        cause = static_cast<TaskId>(task);
    }
  }
  return causes;
}

std::vector<TaskId> before_on_resource(const TaskGraph& graph, const Execution& execution) {
  std::vector<TaskId> order(graph.tasks().size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](TaskId task) { return execution.start[at_index(task)]; });
  std::vector<TaskId> before(order.size(), none), last(graph.resources().size(), none);
  for (const TaskId task : order) {
    before[at_index(task)] = std::exchange(last[at_index(graph.tasks()[at_index(task)].resource)], task);
  }
  return before;
}

std::string without_stream(std::string name) {
  if (constexpr std::string_view stream = " compute"; name.ends_with(stream)) name.resize(name.size() - stream.size());
  return name;
}

class Waits {
 public:
  Waits(const TaskGraph& graph, const Execution& execution)
      : graph_(graph),
        execution_(execution),
        cause_(last_causes(graph, execution)),
        before_(before_on_resource(graph, execution)) {
    for (const Resource& resource : graph.resources()) {
      if (resource.kind == Resource::Kind::device_stream) names_.try_emplace(resource.rank_class, resource.name);
    }
  }

  std::vector<Wait> all() {
    for (std::size_t task = 0; task < cause_.size(); ++task) {
      if (kind_of(static_cast<TaskId>(task)) == Resource::Kind::device_stream) add(static_cast<TaskId>(task));
    }
    std::vector<Wait> waits;
    for (const auto& [lanes, time] : times_) {
      waits.push_back({without_stream(names_.at(lanes.first)), without_stream(names_.at(lanes.second)), time});
    }
    std::ranges::stable_sort(waits, std::ranges::greater{}, &Wait::time);
    return waits;
  }

 private:
  [[nodiscard]] Resource::Kind kind_of(TaskId task) const { return graph_.resource_of(task).kind; }
  [[nodiscard]] int class_of(TaskId task) const { return graph_.resource_of(task).rank_class; }
  [[nodiscard]] Seconds end_of(TaskId task) const {
    return task == none ? Seconds(0.0) : execution_.finish[at_index(task)];
  }
  [[nodiscard]] Seconds start_of(TaskId task) const { return execution_.start[at_index(task)]; }

  /// Follows transfers, and tasks that take no time, back to the kernels that they waited for.
  void add(TaskId task) {
    const int own = class_of(task);
    const Seconds rests_from = end_of(before_[at_index(task)]);
    TaskId at = cause_[at_index(task)];
    while (at != none && end_of(at) > rests_from) {
      const bool works = end_of(at) > start_of(at);
      if (works && graph_.block_of(at).category != Category::communication) break;
      const TaskId needed = cause_[at_index(at)], queued = works ? before_[at_index(at)] : none;
      at = end_of(queued) > end_of(needed) ? queued : needed;
    }
    if (at == none || class_of(at) == own || !names_.contains(class_of(at))) return;
    if (const Seconds time = end_of(at) - rests_from; time > Seconds(0.0)) times_[{class_of(at), own}] += time;
  }

  const TaskGraph& graph_;
  const Execution& execution_;
  std::vector<TaskId> cause_, before_;
  std::map<int, std::string> names_;                   ///< by lane
  std::map<std::pair<int, int>, Seconds> times_ = {};  ///< by who is late and who waits
};

}  // namespace

std::vector<Wait> waits_of(const TaskGraph& graph, const Execution& execution) { return Waits(graph, execution).all(); }

}  // namespace foretrain
