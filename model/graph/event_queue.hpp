// A queue of future events, in an order that depends on nothing but the events themselves.
#pragma once

#include <cstdint>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/graph/task_graph.hpp"

namespace foretrain {

struct Event {
  /// In the order in which events of the same date are handled: what ends makes room before anything starts, and rates
  /// are set once for all that ends and starts.
  enum class Kind : std::uint8_t { flows_end, task_ends, kernels_end, flows_start, rates_change };

  Seconds date;
  Kind kind = Kind::task_ends;
  TaskId task = 0;
  std::int32_t part = 0;        ///< flows_start, flows_end: which flows of the task's collective
  std::int32_t group = -1;      ///< flows_end, rates_change: the interconnect's; kernels_end: the shared device
  std::int32_t generation = 0;  ///< of the group or device; events of earlier ones are out of date
};

/// Events leave by date, then kind, then task, then in the order they came.
class EventQueue {
 public:
  void push(const Event& event) { queue_.push({event, pushed_++}); }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  [[nodiscard]] const Event& next() const { return queue_.top().first; }
  Event pop() {
    const Event event = next();
    queue_.pop();
    return event;
  }

 private:
  using Entry = std::pair<Event, std::int64_t>;
  struct Later {
    static auto rank(const Entry& e) { return std::tuple(e.first.kind, e.first.task, e.second); }
    bool operator()(const Entry& a, const Entry& b) const {
      return a.first.date != b.first.date ? b.first.date < a.first.date : rank(b) < rank(a);
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, Later> queue_;
  std::int64_t pushed_ = 0;
};

}  // namespace foretrain
