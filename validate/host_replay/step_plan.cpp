#include "validate/host_replay/step_plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/collectives/algorithm.hpp"
#include "model/parameter_server/store.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/training/graph/step_graph.hpp"
#include "model/training/pricing/build_step.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

[[noreturn]] void refuse_step(const Scenario& scenario, const std::string& key, const std::string& got,
                              const std::string& expected) {
  throw ScenarioError(position_of(scenario, key), key, got, expected);
}

void check_step(const Scenario& scenario, const TrainWorkload& train) {
  const Plan& plan = scenario.plan;
  if (plan.tensor * plan.pipeline * plan.context * plan.expert != 1 || plan.zero > 0) {
    refuse_step(scenario, "plan", "hosts exchange whole gradients and nothing else", "data parallelism alone, zero: 0");
  }
  if (plan.sync.compression.kind != Compression::Kind::none) {
    refuse_step(scenario, "plan.sync.compression", "hosts send gradients as they are", "none");
  }
  if (train.loader || train.checkpoint) {
    refuse_step(scenario, "workload.train", "hosts read and write no files", "no loader, no checkpoint");
  }
}

StepTask busy(Seconds time) { return {0, time.value(), {}, {}}; }

/// A lane of `graph` as one process does it. What the lane waits for that others do, it learns by the exchanges.
class LaneTasks {
 public:
  LaneTasks(const Step& step, const StepGraph& graph, const std::map<int, ValueRange>& ranges, int lane)
      : graph_(graph.graph), before_(graph_.tasks().size()), numbers_(graph_.tasks().size(), -1) {
    for (TaskId task = 0; std::cmp_less(task, graph_.tasks().size()); ++task) {
      for (const TaskId next : graph_.successors(task)) before_[at_index(next)].push_back(task);
    }
    std::map<TaskId, ValueRange> exchanged;
    std::set<TaskId> of_others;
    for (const StepGraph::Transfer& t : graph.transfers) {
      const Step::Transfer::Part& part = step.transfers[at_index(t.transfer)].parts[t.part];
      const bool takes_part = std::ranges::find(part.lanes, lane) != part.lanes.end();
      if (takes_part) exchanged[t.task] = ranges.at(t.transfer);
      if (!takes_part) of_others.insert(t.task);
    }
    for (TaskId task = 0; std::cmp_less(task, graph_.tasks().size()); ++task) {
      const auto exchange = exchanged.find(task);
      const bool computes = exchange == exchanged.end();
      if (computes && (graph_.resource_of(task).lane != lane || of_others.contains(task))) continue;
      numbers_[at_index(task)] = static_cast<int>(tasks_.size());
      StepTask& mine = tasks_.emplace_back();
      mine.stream = graph_.tasks()[at_index(task)].resource;
      mine.seconds = computes ? graph_.block_of(task).uncontended.value() : 0.0;
      mine.exchanged = computes ? ValueRange{} : exchange->second;
      std::set<int> after;
      collect(task, after);
      mine.after.assign(after.begin(), after.end());
    }
  }
  std::vector<StepTask> take() { return std::move(tasks_); }

 private:
  /// The lane's own tasks before `task`, through those of others.
  void collect(TaskId task, std::set<int>& after) const {
    for (const TaskId before : before_[at_index(task)]) {
      const int number = numbers_[at_index(before)];
      if (number >= 0) after.insert(number);
      if (number < 0) collect(before, after);
    }
  }

  const TaskGraph& graph_;
  std::vector<std::vector<TaskId>> before_;
  std::vector<int> numbers_;  ///< of the lane's tasks among its own, −1 for others
  std::vector<StepTask> tasks_;
};

/// The gradients that each transfer exchanges, one after the other.
std::map<int, ValueRange> ranges_of(const Step& step) {
  std::map<int, ValueRange> ranges;
  std::int64_t next = 0;
  for (const GradientBucket& bucket : step.lanes.front().chunks.front().buckets) {
    const auto count = static_cast<std::int64_t>(bucket.gradients.value() / sizeof(float));
    if (!bucket.stages.empty()) ranges[bucket.stages.front().transfer] = {next, count};
    next += count;
  }
  return ranges;
}

StepPlan plan_buckets(const Step& step) {
  const std::map<int, ValueRange> ranges = ranges_of(step);
  const StepGraph graph = step_graph(step);
  StepPlan plan;
  for (const auto& [transfer, range] : ranges) plan.elements += range.count;
  plan.ranks = static_cast<int>(step.lanes.size());
  for (int lane = 0; lane < plan.ranks; ++lane) {
    plan.tasks.push_back(LaneTasks(step, graph, ranges, lane).take());
    std::vector<StepTask>& tasks = plan.tasks.back();
    StepTask host = busy(step.once_per_step);
    host.stream = graph.compute[at_index(lane)];
    host.after = {static_cast<int>(tasks.size()) - 1};  // the optimizer is the last of a step
    tasks.push_back(std::move(host));
  }
  return plan;
}

/// A step by servers: passes, then all gradients there and all weights back.
StepPlan plan_exchange(const Scenario& scenario, const ParameterStore& store) {
  const Sync& sync = scenario.plan.sync;
  if (store.consistency != Sync::Consistency::synchronous) {
    refuse_step(scenario, "plan.sync.consistency", "the servers of a replay answer when all have pushed",
                "synchronous");
  }
  if (sync.overlap) {
    refuse_step(scenario, "plan.sync.overlap", "workers of a replay push when their backward pass is over", "false");
  }
  StepPlan plan;
  plan.ranks = store.worker_count();
  double parameters = 0.0;
  for (const ParameterStore::KeyGroup& group : store.groups) {
    for (const double on_server : group.parameters) parameters += on_server;
  }
  plan.elements = static_cast<std::int64_t>(parameters * store.gradient.value() / sizeof(float));
  for (int worker = 0; worker < plan.ranks; ++worker) {
    std::vector<StepTask>& tasks = plan.tasks.emplace_back();
    tasks.push_back(busy(store.compute().total() * store.mean_factor(worker)));
    tasks.push_back({0, 0.0, {0, plan.elements}, {}});
    tasks.push_back(busy(store.host_between_steps));
  }
  return plan;
}

}  // namespace

StepPlan plan_step(const Scenario& scenario) {
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  check_step(scenario, train);
  const Model model = build_model(train.model, build_options(train, scenario.plan));
  const Topology topology(scenario.cluster);
  // Every rank a lane of its own: each is a process.
  const Step step =
      build_step(scenario, train, model, topology, Recipes::none, InsideLayers::merged, Symmetry::ignored);
  if (has_servers(scenario.plan.sync.algorithm)) {
    return plan_exchange(scenario, build_store(scenario, train, model, topology, step));
  }
  return plan_buckets(step);
}

}  // namespace foretrain
