#include "model/training/outcome/breakdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// The lane with the most work of its own; the step is seen from there.
std::size_t busiest_lane(const Step& step) {
  const auto work = [](const Step::Lane& lane) {
    Seconds sum;
    for (const Step::Chunk& chunk : lane.chunks) sum += chunk.both_ways();
    return sum;
  };
  return static_cast<std::size_t>(std::ranges::max_element(step.lanes, {}, work) - step.lanes.begin());
}

/// Compression's kernels on a stream of their own; those on the stream of the backward pass count as compute.
Seconds kernels_beside(const GradientBucket& bucket) {
  Seconds kernels = bucket.after;
  for (const GradientBucket::Stage& stage : bucket.stages) kernels += stage.kernels;
  return kernels;
}

/// Forward and backward work of one lane over the whole step, pass by pass. The first forward pass of a chunk may wait
/// for updated weights; the last that makes gradients of weights, or each, runs bucket by bucket beside their
/// collectives.
Segment passes_of(const Step& step, const Step::Lane& lane) {
  const std::vector<PipelinePass> order = step.order_of(lane.stage);
  const std::vector<PipelinePass> last = last_gradients(order, static_cast<int>(lane.chunks.size()));
  std::vector<bool> begun(lane.chunks.size());
  bool in_pair = false;  // with the pass before
  Segment work;
  for (const PipelinePass& pass : order) {
    const Step::Chunk& chunk = lane.chunks[at_index(pass.chunk)];
    const bool first = !pass.backward() && !begun[at_index(pass.chunk)];
    if (first) begun[at_index(pass.chunk)] = true;
    if (std::exchange(in_pair, pass.kind == PassKind::paired) || pass.micro_batch < lane.skipped) continue;
    const bool synchronised = pass.makes_weight_gradients() &&
                              (step.every_micro_batch || pass.micro_batch == last[at_index(pass.chunk)].micro_batch);
    if (!chunk.units.empty()) {
      for (const ShardedUnit& unit : chunk.units) work += (pass.backward() ? unit.backward : unit.forward).time;
    } else if (first && step.gather_overlap && !chunk.gathers.empty()) {
      for (const WeightGather& gather : chunk.gathers) work += gather.forward.time;
    } else if (synchronised && step.overlap) {
      for (const GradientBucket& bucket : chunk.buckets) work += bucket.backward.time;
    } else {
      work += chunk.time(pass.kind);
    }
  }
  return work;
}

using CommunicationTable = std::map<std::string, CommunicationTime>;

struct Interval {
  Seconds start, end;
  CommunicationTable::value_type* row = nullptr;  ///< of what moves then
};

/// When the lane's kernels rest, and not because their host has not dispatched them yet.
std::vector<Interval> idle_intervals(const StepGraph& graph, const Execution& execution, std::size_t lane) {
  std::vector<Interval> busy;
  const std::span<const Task> tasks = graph.graph.tasks();
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    if (std::cmp_equal(task, graph.synchronised)) continue;  // a collective, wherever it stands
    if (tasks[task].resource == graph.compute[lane]) busy.push_back({execution.start[task], execution.finish[task]});
    const Resource& resource = graph.graph.resources()[at_index(tasks[task].resource)];
    if (resource.kind != Resource::Kind::host_thread || !std::cmp_equal(resource.lane, lane)) continue;
    const Seconds host = graph.graph.blocks()[at_index(tasks[task].block)].inside.host;
    busy.push_back({execution.finish[task] - host, execution.finish[task]});
  }
  std::ranges::stable_sort(busy, {}, &Interval::start);
  std::vector<Interval> idle;
  Seconds at;
  for (const Interval& work : busy) {
    if (work.start > at) idle.push_back({at, work.start});
    at = std::max(at, work.end);
  }
  if (execution.makespan > at) idle.push_back({at, execution.makespan});
  return idle;
}

/// Adds to each row how long something of its name moves in the idle intervals; what moves at the same moment shares it
/// equally.
void add_exposed(const std::vector<Interval>& idle, const std::vector<Interval>& moving) {
  struct Change {
    Seconds date;
    bool begins;
    CommunicationTable::value_type* row;  ///< null: an idle interval
  };
  std::vector<Change> changes;
  changes.reserve(2 * (idle.size() + moving.size()));
  for (const std::vector<Interval>* list : {&idle, &moving}) {
    for (const Interval& interval : *list) {
      changes.push_back({interval.start, true, interval.row});
      changes.push_back({interval.end, false, interval.row});
    }
  }
  std::ranges::stable_sort(changes, {}, &Change::date);
  std::vector<std::pair<CommunicationTable::value_type*, int>> in_progress;  // few
  bool resting = false;
  Seconds before;
  for (const Change& change : changes) {
    for (const auto& [row, count] : in_progress) {
      if (resting) row->second.exposed += (change.date - before) / static_cast<double>(in_progress.size());
    }
    before = change.date;
    if (change.row == nullptr) {
      resting = change.begins;
      continue;
    }
    auto own = std::ranges::find(in_progress, change.row, [](const auto& one) { return one.first; });
    if (own == in_progress.end()) own = in_progress.insert(own, {change.row, 0});
    own->second += change.begins ? 1 : -1;
    if (own->second == 0) in_progress.erase(own);
  }
}

/// The algorithms of the lane's transfers, under the name that the communication table has for them.
void add_algorithms(const Step& step, std::size_t lane, CommunicationTable& table) {
  std::map<std::string, std::set<std::string>> of_name;
  for (const Step::Transfer& transfer : step.transfers) {
    for (const Step::Transfer::Part& part : transfer.parts) {
      const bool own = std::ranges::binary_search(part.lanes, static_cast<int>(lane));
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

Seconds step_time(const Step& step, const StepGraph::Times& times, std::optional<Seconds> loader) {
  const Seconds own = times.end + step.once_per_step + step.loader_serial;
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

Breakdown breakdown_of(const Step& step, const StepGraph::Times& times, std::optional<Seconds> loader) {
  const Step::Lane& lane = step.lanes[busiest_lane(step)];
  const Segment passes = passes_of(step, lane);
  Breakdown breakdown;
  breakdown.compute = passes.compute + step.loader_device;
  if (step.stage_count() > 1) {
    const Seconds idle = std::max(times.backward_done - passes.total(), Seconds(0.0));
    breakdown.pipeline_bubble = std::clamp(times.without_transfers - passes.total(), Seconds(0.0), idle);
  }
  breakdown.host_overhead = passes.host + lane.optimizer.host + step.once_per_step;
  breakdown.optimizer = lane.optimizer.compute;
  const Seconds whole = step_time(step, times, loader);
  const Seconds own = times.end + step.once_per_step + step.loader_serial;
  breakdown.data_stall = step.loader_serial - step.loader_device + (whole - own);
  const Seconds rest = beyond_rounding(whole - breakdown.total(), whole);
  breakdown.exposed_communication = std::max(rest, Seconds(0.0));
  // Dispatch and communication can overlap in ways that the parts above count twice; compute absorbs the difference.
  breakdown.compute += std::min(rest, Seconds(0.0));
  return breakdown;
}

std::map<std::string, CommunicationTime> communication_of(const Step& step, const StepGraph& graph,
                                                          const Execution& execution, const Breakdown& breakdown) {
  const std::size_t lane = busiest_lane(step);
  CommunicationTable table;
  std::vector<CommunicationTable::value_type*> row_of(step.transfers.size());
  std::vector<Interval> moving;
  for (const auto& [task, index, part] : graph.transfers) {
    const Step::Transfer& transfer = step.transfers[at_index(index)];
    if (!std::ranges::binary_search(transfer.parts[part].lanes, static_cast<int>(lane))) continue;
    auto& row = row_of[at_index(index)];
    if (row == nullptr) row = &*table.try_emplace(transfer.name).first;
    moving.push_back({execution.start[at_index(task)], execution.finish[at_index(task)], row});
    row->second.total += moving.back().end - moving.back().start;
    if (!is_inside_layers(transfer.kind)) row->second.sent += transfer.sent;
  }
  if (step.gradient_norm > Seconds(0.0)) {
    auto& row = *table.try_emplace("gradient norm").first;
    moving.push_back(
        {execution.start[at_index(graph.synchronised)], execution.finish[at_index(graph.synchronised)], &row});
    row.second.total = step.gradient_norm;
  }
  add_exposed(idle_intervals(graph, execution, lane), moving);
  Seconds in_progress;
  for (const auto& [name, time] : table) in_progress += time.exposed;

  const Inside merged = merged_on(graph, lane);
  const Seconds waiting = std::min(step.slowest_replica, breakdown.exposed_communication);
  const Seconds rest =
      std::max(breakdown.exposed_communication - merged.exposed - merged.exposed_copies - waiting, Seconds(0.0));
  // A pipeline's bubble may have been counted out of moments in which its messages were on their way.
  const double counted = in_progress > rest ? rest / in_progress : 1.0;
  for (auto& [name, time] : table) time.exposed *= counted;
  Seconds kernels;
  for (const Step::Chunk& chunk : step.lanes[lane].chunks) {
    for (const GradientBucket& bucket : chunk.buckets) kernels += kernels_beside(bucket);
  }
  Seconds unexplained = beyond_rounding(rest - in_progress * counted, breakdown.total());
  if (kernels > Seconds(0.0)) {
    const Seconds all = kernels * (step.every_micro_batch ? static_cast<double>(step.micro_batches) : 1.0);
    const Seconds exposed = std::min(all, unexplained);
    table["compression kernels"] = {all, exposed};
    unexplained -= exposed;
  }
  if (const Seconds alone = std::min(step.lanes[lane].exchanges_alone, unexplained); alone > Seconds(0.0)) {
    table[inside_layers].exposed += alone;
    unexplained -= alone;
  }
  if (unexplained > Seconds(0.0)) table["waiting for other ranks"] = {unexplained, unexplained};
  if (waiting > Seconds(0.0)) table["waiting for the slowest replica"] = {waiting, waiting};
  const auto add_merged = [&table](const char* name, Seconds exposed, Seconds hidden) {
    if (!(exposed + hidden > Seconds(0.0))) return;
    table[name].total += exposed + hidden;
    table[name].exposed += exposed;
  };
  add_merged(inside_layers, merged.exposed, merged.hidden);
  add_merged(copies_of_offloading, merged.exposed_copies, merged.hidden_copies);
  add_algorithms(step, lane, table);
  for (const auto& [name, traffic] : traffic_inside_layers(step)) {
    if (const auto row = table.find(inside_layers); row != table.end()) row->second.sent += traffic.sent;
  }
  return table;
}

std::map<std::string, InsideTraffic> traffic_inside_layers(const Step& step) {
  const std::size_t lane = busiest_lane(step);
  const std::vector<PipelinePass> order = step.order_of(step.lanes[lane].stage);
  std::map<std::string, InsideTraffic> traffic;
  for (std::size_t k = 0; k < step.lanes[lane].chunks.size(); ++k) {
    const auto its_own = [&](const PipelinePass& pass) { return !pass.backward() && at_index(pass.chunk) == k; };
    const auto micro_batches = number(std::ranges::count_if(order, its_own) - step.lanes[lane].skipped);
    for (const auto& [name, index, count] : step.lanes[lane].chunks[k].inside) {
      const Step::Transfer& transfer = step.transfers[at_index(index)];
      const auto own = std::ranges::find_if(transfer.parts, [&](const Step::Transfer::Part& part) {
        return std::ranges::binary_search(part.lanes, static_cast<int>(lane));
      });
      InsideTraffic& of_kind = traffic[std::string(name)];
      of_kind.count += count * micro_batches;
      of_kind.sent += transfer.sent * (count * micro_batches);
      if (own != transfer.parts.end()) of_kind.alone += own->longest() * (count * micro_batches);
    }
  }
  return traffic;
}

}  // namespace foretrain
