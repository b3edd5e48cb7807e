// A task graph made ready on this machine's GPUs, step by step.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/number.hpp"
#include "validate/cuda/core/executable_graph.hpp"
#include "validate/cuda/core/timing.hpp"
#include "validate/cuda/replay/work.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain::gpu {

/// Times of one step with events between its tasks.
struct Moments {
  std::map<int, std::pair<double, double>> tasks;                    ///< start and end
  std::map<int, double> host;                                        ///< the host thread's time for it
  std::map<std::pair<int, std::size_t>, std::vector<double>> items;  ///< by block and place in it
};

/// Events of one GPU in the order in which they were recorded, kept from step to step.
class EventLine {
 public:
  /// Records the next event on a stream of the current GPU.
  const Event* record(cudaStream_t stream) {
    if (used_ == events_.size()) events_.push_back(std::make_unique<Event>());
    events_[used_]->record(stream);
    return events_[used_++].get();
  }
  void restart() { used_ = 0; }

 private:
  std::vector<std::unique_ptr<Event>> events_;
  std::size_t used_ = 0;
};

class Replayer final : public replay::Backend {
 public:
  /// Granularity of timing: the step, with events between its tasks, or between the items of their work as well.
  enum class Detail { step, tasks, work };
  using Operation = replay::Operation;

  explicit Replayer(const replay::Graph& graph)
      : graph_(graph), plan_(replay::plan_issue(graph)), streams_(graph, plan_) {
    make_ready();
    for (const Operation& operation : plan_.operations) {
      if (operation.kind == Operation::Kind::graph) capture(operation);
    }
    if (graph.capture) capture_step();
  }

  /// Seconds from the first moment to the last one, on the device's clock.
  double step(Detail detail) {
    throw_if_interrupted();
    detail_ = detail;
    for (auto& [device, line] : lines_) line.restart();
    task_events_.clear();
    item_events_.clear();
    host_.clear();
    dispatch_ = -1;
    const OnDevice first(0);
    zero_.record(streams_.origin().get());
    zero_.synchronize();
    const double zero = now();  // the device's moment zero_, but for the time that it takes to see it
    gate();
    start_.record(streams_.origin().get());
    const double begin = now();
    host_zero_ = zero;
    if (detail == Detail::step && whole_) {
      whole_->launch(streams_.origin().get());
    } else {
      streams_.fork();
      if (detail != Detail::step) record_starts();
      replay::issue(plan_, *this);
      streams_.join();
    }
    end_.record(streams_.origin().get());
    host_time_ = now() - begin;
    for (const auto& doer : doers_) doer->wait();
    end_.synchronize();
    GPU_CHECK(cudaGetLastError());
    start_offset_ = elapsed(zero_, start_);
    for (const auto& doer : doers_) doer->end_step();
    free_locked();
    ++turn_;
    return elapsed(start_, end_);
  }

  [[nodiscard]] double host_time() const { return host_time_; }
  [[nodiscard]] Moments moments() const {
    Moments moments;
    for (const auto& [task, events] : task_events_) {
      const Event& start = start_of(device_of(task));
      moments.tasks[task] = {elapsed(start, *events.first), elapsed(start, *events.second)};
    }
    for (const auto& [task, times] : host_) {
      moments.host[task] = times.second - times.first;
      if (!resource_of(task).on_host()) continue;
      moments.tasks[task] = {times.first - host_zero_ - start_offset_, times.second - host_zero_ - start_offset_};
    }
    for (const auto& [item, all] : item_events_) {
      for (const EventPair& pair : all) moments.items[item].push_back(elapsed(*pair.first, *pair.second));
    }
    return moments;
  }

  [[nodiscard]] const std::vector<std::unique_ptr<Doer>>& doers() const { return doers_; }

  ~Replayer() override { free_locked(); }
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  // As replay::issue() asks.
  void stream_waits(int stream, int event) override { streams_.wait(event, stream); }
  void record(int event, int stream) override { streams_.record(event, stream); }
  void host_waits(int event) override { streams_.synchronize(event); }
  void run(int task, int stream) override {
    const double begin = detail_ == Detail::step ? 0.0 : now();
    if (stream < 0) {
      for (const Work& work : block_of(task).work) do_on_host(work);
      keep_pace(task);
    } else {
      put(task, stream);
    }
    note_host(task, begin);
  }
  void run_graph(int first, int count, int stream) override {
    const double begin = detail_ == Detail::step ? 0.0 : now();
    const ReplayStreams::Lane& lane = streams_.lanes(stream).front();
    const OnDevice here(lane.device);
    const bool timed = detail_ != Detail::step;
    const Event* from = timed ? lines_[lane.device].record(lane.stream->get()) : nullptr;
    graphs_.at(key_of(first, count))->launch(lane.stream->get());
    if (timed && count == 1) task_events_[first] = {from, lines_[lane.device].record(lane.stream->get())};
    note_host(first, begin);
  }

 private:
  using EventPair = std::pair<const Event*, const Event*>;

  void make_ready() {
    doers_.push_back(make_kernel_doer(streams_));  // by the kind's place in Work
    doers_.push_back(make_copy_doer(streams_, graph_.gpus));
    doers_.push_back(make_collective_doer(streams_));
    try {
      for (int task = 0; std::cmp_less(task, graph_.tasks.size()); ++task) {
        for (std::size_t i = 0; i < block_of(task).work.size(); ++i) {
          const WorkItem item = item_of(task, i);
          if (!std::holds_alternative<HostWork>(item.work)) doers_[item.work.index()]->see(item);
        }
      }
      for (const auto& doer : doers_) doer->make_ready();
    } catch (const GpuError& error) {
      if (error.fault() != Fault::out_of_memory) throw;
      throw GpuError(error.fault(), graph_.name + " does not fit: " + error.what() +
                                        "; export it with a smaller batch, or end what else uses the GPU");
    }
  }
  WorkItem item_of(int task, std::size_t index) {
    const replay::Task& stated = graph_.tasks[at_index(task)];
    return {block_of(task).work[index], stated.block, index, stated.resource, pace_};
  }

  /// Runs the host thread's work: launches and events are real, and awaited events have happened.
  void do_on_host(const Work& work) {
    const auto* host = std::get_if<HostWork>(&work);
    if (host == nullptr) return;
    // A text that is formatted is a framework's: the host is busy for as long as it would be.
    if (host->action == HostWork::Action::sleep || host->action == HostWork::Action::format) {
      busy_until(now() + host->duration.value());
    }
    if (host->action == HostWork::Action::page_lock && host->size > Bytes(0.0)) {
      GPU_CHECK(cudaHostAlloc(&locked_.emplace_back(nullptr), to_size(host->size), cudaHostAllocPortable));
    }
  }
  void free_locked() {
    for (void* data : std::exchange(locked_, {})) cudaFreeHost(data);
  }

  /// A framework's dispatch takes its time; what it hands over follows.
  void keep_pace(int task) {
    const auto* dispatch = std::get_if<HostWork>(&block_of(task).work.front());
    if (!by_framework(task) || dispatch == nullptr) return;
    pace_.begin(dispatch->duration.value(), dispatch->kernels);
  }
  [[nodiscard]] bool by_framework(int task) const {
    return resource_of(task).kind == replay::Resource::Kind::framework;
  }

  /// The host thread's time for a task; a dispatch lasts until all that it hands over has been launched.
  void note_host(int task, double begin) {
    if (detail_ == Detail::step) return;
    const double end = now();
    host_[task] = {begin, end};
    const std::vector<Work>& work = block_of(task).work;
    const auto* host = work.empty() ? nullptr : std::get_if<HostWork>(&work.front());
    if (host != nullptr) {
      dispatch_ = host->action == HostWork::Action::dispatch ? task : -1;
      to_launch_ = host->graph || by_framework(task) ? 1 : host->kernels;
    } else if (dispatch_ >= 0 && to_launch_ > 0) {
      host_[dispatch_].second = end;
      --to_launch_;
    }
  }

  [[nodiscard]] const replay::Block& block_of(int task) const {
    return graph_.blocks[at_index(graph_.tasks[at_index(task)].block)];
  }
  [[nodiscard]] const replay::Resource& resource_of(int task) const {
    return graph_.resources[at_index(graph_.tasks[at_index(task)].resource)];
  }
  [[nodiscard]] int device_of(int task) const {
    return streams_.lanes(graph_.tasks[at_index(task)].resource).front().device;
  }
  /// Events of different GPUs cannot be compared: each has a moment of its own that follows the beginning, by as much
  /// as an event takes from one GPU to another.
  void record_starts() {
    for (const int stream : plan_.streams) {
      const ReplayStreams::Lane& lane = streams_.lanes(stream).front();
      if (lane.device == 0) continue;
      const OnDevice here(lane.device);
      std::unique_ptr<Event>& start = starts_[lane.device];
      if (!start) start = std::make_unique<Event>();
      start->record(lane.stream->get());
    }
  }
  [[nodiscard]] const Event& start_of(int device) const { return device == 0 ? start_ : *starts_.at(device); }

  /// Blocks in their order, and the stream: what is launched again is the same graph.
  [[nodiscard]] std::vector<int> key_of(int first, int count) const {
    std::vector<int> key = {graph_.tasks[at_index(first)].resource};
    for (int i = 0; i < count; ++i) key.push_back(graph_.tasks[at_index(first + i)].block);
    return key;
  }

  /// Launches what a task does, with events around it, or around each item, where that is wanted. Of replicas the
  /// first one is timed.
  void put(int task, int stream) {
    const ReplayStreams::Lane& lane = streams_.lanes(stream).front();
    const std::size_t items = block_of(task).work.size();
    const bool timed = detail_ != Detail::step && items > 0;
    const Event *from = nullptr, *before = nullptr;
    const auto moment = [&] {
      const OnDevice here(lane.device);
      return lines_[lane.device].record(lane.stream->get());
    };
    if (timed) from = before = moment();
    for (std::size_t i = 0; i < items; ++i) {
      const WorkItem item = item_of(task, i);
      if (!std::holds_alternative<HostWork>(item.work)) doers_[item.work.index()]->put(item, turn_);
      if (!timed || detail_ != Detail::work || items == 1) continue;
      const Event* after = moment();
      item_events_[{graph_.tasks[at_index(task)].block, i}].emplace_back(before, after);
      before = after;
    }
    if (timed) task_events_[task] = {from, moment()};
  }

  void capture(const Operation& operation) {
    std::unique_ptr<ExecutableGraph>& graph = graphs_[key_of(operation.task, operation.count)];
    if (graph) return;
    const ReplayStreams::Lane& lane = streams_.lanes(operation.stream).front();
    const OnDevice here(lane.device);
    graph = std::make_unique<ExecutableGraph>(*lane.stream, [&] {
      for (int i = 0; i < operation.count; ++i) put(operation.task + i, operation.stream);
    });
  }

  void capture_step() {
    const OnDevice first(0);
    step(Detail::step);  // libraries make what they need before they are captured
    whole_ = std::make_unique<ExecutableGraph>(streams_.origin(), [&] {
      streams_.fork();
      replay::issue(plan_, *this);
      streams_.join();
    });
  }

  /// Work without a launch is there when the device is: the device is kept busy until all of it has been handed
  /// over, as far as its queues hold it.
  void gate() {
    const bool host = std::ranges::any_of(graph_.resources, &replay::Resource::on_host);
    if (host || whole_) return;
    constexpr double per_call_s = 10e-6;
    keep_busy(Seconds(per_call_s * replay::calls_of(graph_, plan_)), streams_.origin().get());
  }

  const replay::Graph& graph_;
  replay::IssuePlan plan_;
  ReplayStreams streams_;
  LaunchPace pace_;
  std::vector<std::unique_ptr<Doer>> doers_;
  std::vector<void*> locked_;  ///< pinned memory of this step
  std::map<std::vector<int>, std::unique_ptr<ExecutableGraph>> graphs_;
  std::unique_ptr<ExecutableGraph> whole_;
  Event zero_, start_, end_;
  std::map<int, EventLine> lines_;                ///< by device
  std::map<int, std::unique_ptr<Event>> starts_;  ///< of devices but the first
  Detail detail_ = Detail::step;
  int turn_ = 0;
  int dispatch_ = -1, to_launch_ = 0;  ///< the dispatch at work, and what it still hands over
  double host_zero_ = 0.0, start_offset_ = 0.0, host_time_ = 0.0;
  std::map<int, EventPair> task_events_;
  std::map<std::pair<int, std::size_t>, std::vector<EventPair>> item_events_;
  std::map<int, std::pair<double, double>> host_;
};

}  // namespace foretrain::gpu
