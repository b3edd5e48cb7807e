#include "model/training/outcome/breakdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// The rank class with the most work of its own; the step is seen from there.
std::size_t busiest_class(const Step& step) {
  const auto work = [](const Step::RankClass& rank_class) {
    Seconds sum;
    for (const Step::Chunk& chunk : rank_class.chunks) sum += chunk.both_ways();
    return sum;
  };
  return static_cast<std::size_t>(std::ranges::max_element(step.rank_classes, {}, work) - step.rank_classes.begin());
}

using CommunicationTable = std::map<std::string, CommunicationTime>;
using Row = CommunicationTable::value_type;

struct Interval {
  Seconds start, end;
  Row* row = nullptr;  ///< of what moves then
};

Seconds length_of(const std::vector<Interval>& intervals) {
  Seconds sum;
  for (const Interval& interval : intervals) sum += interval.end - interval.start;
  return sum;
}

/// Parts of a block's task that took so long, as a real execution decides.
TimeBreakdown parts_of(const Block& block, Seconds took) {
  const double longer = block.uncontended > Seconds(0.0) ? took / block.uncontended : 1.0;
  TimeBreakdown parts{block.inside * longer, {}};
  parts.compute = took - parts.communication() - parts.host;
  return parts;
}

/// A rank class from the step's beginning to its end, each moment once.
struct RankClassTime {
  TimeBreakdown passes;        ///< forward and backward
  std::vector<Interval> idle;  ///< its kernels rest, and not because their host has not dispatched them yet
  Seconds between_passes;      ///< idle before the last backward pass of all rank classes has ended
};

RankClassTime time_of(const StepGraph& graph, const Execution& execution, std::size_t rank_class) {
  struct Work {
    Seconds start, end;
    const Block* block;
  };
  std::vector<Work> works;
  const std::vector<TaskId>& tasks = (*graph.of_class)[rank_class].works;
  works.reserve(tasks.size());
  for (const TaskId task : tasks) {
    const Block& block = graph.graph.block_of(task);
    const Seconds end = execution.finish[at_index(task)];
    const bool dispatches = block.category == Category::host;
    works.push_back({dispatches ? end - block.inside.host : execution.start[at_index(task)], end, &block});
  }
  if (!std::ranges::is_sorted(works, {}, &Work::start)) std::ranges::stable_sort(works, {}, &Work::start);
  RankClassTime time;
  Seconds passed;
  for (const TaskId task : graph.last_backward) passed = std::max(passed, execution.finish[at_index(task)]);
  const auto add_idle = [&](Seconds from, Seconds to) {
    if (from < to) time.idle.push_back({from, to});
    time.between_passes += std::max(std::min(to, passed) - from, Seconds(0.0));
  };
  Seconds at;
  Interval dispatch;  // the last one, as far as nothing ran before it
  for (const auto& [start, end, block] : works) {
    add_idle(at, start);
    const Seconds took = end - start;
    const bool as_priced = beyond_rounding(took - block->uncontended, execution.makespan) == Seconds(0.0);
    if (block->category == Category::host) {
      dispatch = {std::min(std::max(at, start), end), end};
      time.passes.host += dispatch.end - dispatch.start;
    }
    if (block->category == Category::compute) {
      time.passes += parts_of(*block, as_priced ? block->uncontended : took);
      const Seconds beside = std::min(dispatch.end, end) - std::max(dispatch.start, start);
      time.passes.host -= std::max(beside, Seconds(0.0));  // a moment counts once
    }
    at = std::max(at, end);
  }
  add_idle(at, execution.makespan);
  return time;
}

/// Adds to each row how long something of its name moves in the idle intervals, which do not overlap; names that move
/// at the same moment share it equally.
void add_exposed(const std::vector<Interval>& idle, const std::vector<Interval>& moving) {
  struct MovingTime {
    std::size_t in;  ///< which idle interval
    Interval moving;
  };
  std::vector<MovingTime> times;
  std::size_t at = 0;  // the first idle interval that ends later than what moves starts: seldom far from the last one
  for (const auto& [start, end, row] : moving) {
    while (at > 0 && idle[at - 1].end > start) --at;
    while (at < idle.size() && idle[at].end <= start) ++at;
    for (std::size_t in = at; in < idle.size() && idle[in].start < end; ++in) {
      times.push_back({in, {std::max(start, idle[in].start), std::min(end, idle[in].end), row}});
    }
  }
  std::ranges::stable_sort(times, {}, &MovingTime::in);
  std::vector<Seconds> dates;
  std::vector<Row*> rows;  // few
  for (auto first = times.begin(); first != times.end();) {
    const auto last = std::find_if(first, times.end(), [&](const MovingTime& one) { return one.in != first->in; });
    if (last == first + 1) {  // mostly
      first->moving.row->second.exposed += first->moving.end - first->moving.start;
      first = last;
      continue;
    }
    dates.clear();
    for (auto one = first; one != last; ++one) {
      dates.push_back(one->moving.start);
      dates.push_back(one->moving.end);
    }
    std::ranges::sort(dates);
    for (std::size_t i = 0; i + 1 < dates.size(); ++i) {
      rows.clear();
      for (auto one = first; one != last; ++one) {
        const bool moves = one->moving.start <= dates[i] && one->moving.end >= dates[i + 1];
        if (moves && std::ranges::find(rows, one->moving.row) == rows.end()) rows.push_back(one->moving.row);
      }
      for (Row* row : rows) row->second.exposed += (dates[i + 1] - dates[i]) / number(rows.size());
    }
    first = last;
  }
}

/// Transfers of a rank class's ranks, and their rows in the table. Of kernels there, those that compress gradients are
/// beside the passes.
std::vector<Interval> moving_on(const Step& step, const StepGraph& graph, const Execution& execution,
                                std::size_t rank_class, CommunicationTable& table) {
  std::vector<Interval> moving;
  const auto add = [&](TaskId task, Row& row) {
    moving.push_back({execution.start[at_index(task)], execution.finish[at_index(task)], &row});
    row.second.total += moving.back().end - moving.back().start;
  };
  struct Part {
    bool own = false;
    Row* row = nullptr;
  };
  std::vector<std::vector<Part>> parts;  // by transfer
  for (const Step::Transfer& transfer : step.transfers) {
    std::vector<Part>& of_transfer = parts.emplace_back();
    for (const Step::Transfer::Part& part : transfer.parts) {
      of_transfer.push_back({std::ranges::binary_search(part.rank_classes, static_cast<int>(rank_class))});
    }
  }
  for (const auto& [task, index, number] : graph.transfers) {
    Part& part = parts[at_index(index)][number];
    if (!part.own) continue;
    const Step::Transfer& transfer = step.transfers[at_index(index)];
    if (part.row == nullptr) part.row = &*table.try_emplace(transfer.name).first;
    add(task, *part.row);
    if (!is_inside_layers(transfer.kind)) part.row->second.sent += transfer.sent;
  }
  for (const TaskId task : (*graph.of_class)[rank_class].beside) {
    if (!(graph.graph.block_of(task).uncontended > Seconds(0.0))) continue;
    if (task == graph.synchronised) {
      add(task, *table.try_emplace("gradient norm").first);
    } else if (graph.graph.block_of(task).category == Category::compute) {
      add(task, *table.try_emplace("compression kernels").first);
    }
  }
  return moving;
}

Seconds exposed_in(const CommunicationTable& table) {
  Seconds sum;
  for (const auto& [name, time] : table) sum += time.exposed;
  return sum;
}

/// Communication of a rank class, and its part while the rank class is idle.
CommunicationTable communication_of(const Step& step, const StepGraph& graph, const Execution& execution,
                                    std::size_t rank_class, const RankClassTime& time) {
  CommunicationTable table;
  const std::vector<Interval> moving = moving_on(step, graph, execution, rank_class, table);
  add_exposed(time.idle, moving);
  return table;
}

/// A rank class's idle time between passes, less collectives inside layers.
Seconds idle_for_others(const RankClassTime& time, const CommunicationTable& table) {
  const auto inside = table.find(inside_layers);
  return inside == table.end() ? time.between_passes : time.between_passes - inside->second.exposed;
}

/// Idle time of a rank class between passes if activations and updated weights moved in no time, as
/// far as it is: `time` and `table` say of what it is.
Seconds bubble_of(const Step& step, const StepGraph& graph, std::size_t rank_class, const RankClassTime& time,
                  const CommunicationTable& table) {
  if (step.stage_count() == 1) return Seconds(0.0);
  Seconds idle = idle_for_others(time, table);
  if (!graph.arrivals.empty()) {
    const Execution early = run(graph.graph, graph.arrivals);
    const RankClassTime then = time_of(graph, early, rank_class);
    const bool any_inside = table.contains(inside_layers);
    idle = std::min(idle, any_inside ? idle_for_others(then, communication_of(step, graph, early, rank_class, then))
                                     : then.between_passes);
  }
  return std::max(idle, Seconds(0.0));
}

std::map<std::string, InsideTraffic> traffic_inside_layers(const Step& step, std::size_t rank_class) {
  const std::vector<PipelinePass> order = step.order_of(step.rank_classes[rank_class].stage);
  std::map<std::string, InsideTraffic> traffic;
  for (std::size_t k = 0; k < step.rank_classes[rank_class].chunks.size(); ++k) {
    const auto its_own = [&](const PipelinePass& pass) { return !pass.backward() && at_index(pass.chunk) == k; };
    const auto micro_batches =
        number(std::ranges::count_if(order, its_own) - step.rank_classes[rank_class].missing_micro_batches);
    for (const auto& [name, index, count] : step.rank_classes[rank_class].chunks[k].inside) {
      const Step::Transfer& transfer = step.transfers[at_index(index)];
      const auto own = std::ranges::find_if(transfer.parts, [&](const Step::Transfer::Part& part) {
        return std::ranges::binary_search(part.rank_classes, static_cast<int>(rank_class));
      });
      InsideTraffic& of_kind = traffic[std::string(name)];
      of_kind.count += count * micro_batches;
      of_kind.sent += transfer.sent * (count * micro_batches);
      if (own != transfer.parts.end()) of_kind.alone += own->longest() * (count * micro_batches);
    }
  }
  return traffic;
}

/// The algorithms of the rank class's transfers, under the name that the communication table has for them.
void add_algorithms(const Step& step, std::size_t rank_class, CommunicationTable& table) {
  std::map<std::string, std::set<std::string>> of_name;
  for (const Step::Transfer& transfer : step.transfers) {
    for (const Step::Transfer::Part& part : transfer.parts) {
      const bool own = std::ranges::binary_search(part.rank_classes, static_cast<int>(rank_class));
      if (own && !part.lowered.phases.empty()) of_name[transfer.name].insert(part.lowered.chosen_algorithm);
    }
  }
  for (const auto& [name, algorithms] : of_name) {
    const auto row = table.find(name);
    if (row != table.end()) row->second.algorithm = fmt::format("{}", fmt::join(algorithms, ", "));
  }
}

}  // namespace

Seconds beyond_rounding(Seconds difference, Seconds whole) {
  return std::abs(difference.value()) > 1e-9 * whole.value() ? difference : Seconds(0.0);
}

Seconds step_time(const Step& step, Seconds end, std::optional<Seconds> loader) {
  const Seconds own = end + step.once_per_step + step.loader_serial;
  // A pipeline that keeps pace with the step has the step's own interval.
  return own + std::max(beyond_rounding(loader.value_or(step.loader_interval) - own, own), Seconds(0.0));
}

const char* bottleneck_of(const Breakdown& breakdown) {
  const Seconds step = breakdown.total();
  for (const IdlePart& part : idle_parts) {
    if (breakdown.*part.time > part.limit * step) return part.name;
  }
  return breakdown.optimizer > breakdown.compute ? "optimizer" : "compute";
}

TimeUse time_use(const Step& step, const StepGraph& graph, const Execution& execution, Seconds end,
                 std::optional<Seconds> loader) {
  const std::size_t rank_class = busiest_class(step);
  const RankClassTime time = time_of(graph, execution, rank_class);
  const TimeBreakdown& update = step.rank_classes[rank_class].optimizer;
  const Seconds own = end + step.once_per_step + step.loader_serial, whole = step_time(step, end, loader);
  TimeUse use;
  CommunicationTable& table = use.communication;
  table = communication_of(step, graph, execution, rank_class, time);
  const Seconds bubble = beyond_rounding(bubble_of(step, graph, rank_class, time, table), whole);
  const Seconds idle = length_of(time.idle) - bubble + (end - execution.makespan);
  const Seconds awaited = std::max(idle - step.slowest_replica, Seconds(0.0));
  // A bubble is idle in any case, also while something moves.
  const double counted = exposed_in(table) > awaited ? awaited / exposed_in(table) : 1.0;
  for (auto& [name, row] : table) row.exposed *= counted;
  const auto add_waiting = [&table](const char* name, Seconds waited) {
    if (waited > Seconds(0.0)) table[name] = {waited, waited};
  };
  add_waiting("waiting for other ranks", beyond_rounding(awaited - exposed_in(table), whole));
  add_waiting("waiting for the slowest replica", step.slowest_replica);

  Breakdown& breakdown = use.breakdown;
  breakdown.compute = time.passes.compute + step.loader_device;
  breakdown.exposed_communication = time.passes.communication() + update.communication() + beyond_rounding(idle, whole);
  breakdown.pipeline_bubble = bubble;
  breakdown.data_stall = step.loader_serial - step.loader_device + (whole - own);
  breakdown.host_overhead = time.passes.host + update.host + step.once_per_step;
  breakdown.optimizer = update.compute;

  const auto add_merged = [&table](const char* name, Seconds exposed, Seconds hidden) {
    if (!(exposed + hidden > Seconds(0.0))) return;
    table[name].total += exposed + hidden;
    table[name].exposed += exposed;
  };
  add_merged(inside_layers, time.passes.exposed, time.passes.hidden);
  if (update.exposed > Seconds(0.0)) table[inside_layers].exposed += update.exposed;  // passes count it as hidden
  add_merged(copies_of_offloading, time.passes.exposed_copies + update.exposed_copies,
             time.passes.hidden_copies + update.hidden_copies);
  add_algorithms(step, rank_class, table);
  use.inside_layers = traffic_inside_layers(step, rank_class);
  for (const auto& [name, traffic] : use.inside_layers) {
    if (const auto row = table.find(inside_layers); row != table.end()) row->second.sent += traffic.sent;
  }
  return use;
}

}  // namespace foretrain
