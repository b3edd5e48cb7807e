#include "validate/host_replay/replay_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/job/job.hpp"
#include "model/parameter_server/store.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "model/training/outcome/checkpoint.hpp"
#include "model/training/pricing/build_step.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

void check_step(const Scenario& scenario, const TrainWorkload& train) {
  const Plan& plan = scenario.plan;
  if (plan.sync.compression.kind != Compression::Kind::none) {
    refuse_replay(scenario, "plan.sync.compression", "hosts send gradients as they are", "none");
  }
  if (train.checkpoint && train.checkpoint->mode != Checkpoint::Mode::synchronous) {
    refuse_replay(scenario, "workload.train.checkpoint", "hosts write nothing beside a step", "mode: synchronous");
  }
  if (scenario.cluster.jitter) {
    refuse_replay(scenario, "cluster.jitter", "hosts have what chance they have", "no jitter");
  }
}

/// Messages over links, phase by phase; those between the same two ranks joined.
Exchange exchange_of(const LoweredCollective& lowered) {
  Exchange exchange;
  for (const LoweredCollective::Phase& phase : lowered.phases) {
    Exchange::Phase& own = exchange.phases.emplace_back();
    own.repeat = phase.repeat;
    for (const Flow& flow : merge_by_ends(phase.flows)) {
      const auto bytes = static_cast<std::int64_t>(std::llround(flow.bytes.value()));
      if (bytes > 0) own.messages.push_back({flow.source, flow.destination, bytes});
    }
  }
  return exchange;
}

/// The tasks of a graph as those of processes.
class RankTasks {
 public:
  RankTasks(const TaskGraph& graph, const std::map<TaskId, std::set<int>>& together)
      : graph_(graph), together_(together), exchange_of_block_(graph.blocks().size(), -1) {
    for (TaskId task = 0; std::cmp_less(task, graph.tasks().size()); ++task) {
      const BlockId block = graph.tasks()[at_index(task)].block;
      int& exchange = exchange_of_block_[at_index(block)];
      const std::optional<LoweredCollective>& flows = graph.block_of(task).flows;
      if (exchange >= 0 || !flows || flows->phases.empty()) continue;
      exchange = static_cast<int>(exchanges_.size());
      exchanges_.push_back(foretrain::exchange_of(*flows));
    }
  }

  /// `task`, for which the graph has a time alone, moves this.
  void moves(TaskId task, Exchange exchange) {
    exchange_of_block_[at_index(graph_.tasks()[at_index(task)].block)] = static_cast<int>(exchanges_.size());
    exchanges_.push_back(std::move(exchange));
  }
  /// Tasks of a rank, and their numbers in the graph.
  std::pair<std::vector<StepTask>, std::vector<TaskId>> of_rank(int rank) const {
    std::vector<StepTask> tasks;
    std::vector<TaskId> numbers;
    std::vector<LastOfStreams> last(graph_.tasks().size());
    for (TaskId task = 0; std::cmp_less(task, last.size()); ++task) {
      LastOfStreams& before = last[at_index(task)];
      for (const TaskId other : graph_.predecessors(task)) {
        for (const auto& [stream, number] : last[at_index(other)]) {
          before[stream] = std::max(before.try_emplace(stream, number).first->second, number);
        }
      }
      if (!takes_part(task, rank)) continue;
      const int exchange = exchange_of_block_[at_index(graph_.tasks()[at_index(task)].block)];
      StepTask& mine = tasks.emplace_back();
      mine.stream = graph_.tasks()[at_index(task)].resource;
      mine.exchange = exchange;
      mine.seconds = exchange < 0 ? graph_.block_of(task).uncontended.value() : 0.0;
      for (const auto& [stream, number] : before) mine.after.push_back(number);
      std::ranges::sort(mine.after);
      before = {{mine.stream, static_cast<int>(numbers.size())}};
      numbers.push_back(task);
    }
    return {std::move(tasks), std::move(numbers)};
  }
  std::vector<Exchange> take_exchanges() { return std::move(exchanges_); }

 private:
  /// Of a rank's tasks, by stream: the last that a task waits for, itself or through tasks of others. Those before it
  /// in its stream have ended by then.
  using LastOfStreams = std::map<int, int>;

  [[nodiscard]] bool takes_part(TaskId task, int rank) const {
    const auto ranks = together_.find(task);
    return ranks != together_.end() ? ranks->second.contains(rank) : graph_.resource_of(task).rank_class == rank;
  }

  const TaskGraph& graph_;
  const std::map<TaskId, std::set<int>>& together_;
  std::vector<int> exchange_of_block_;  ///< −1 where it moves nothing
  std::vector<Exchange> exchanges_;
};

/// One number from every rank to the first one, and their sum back.
Exchange sum_of_numbers(int ranks) {
  Exchange exchange;
  exchange.phases.resize(2);
  for (int rank = 1; rank < ranks; ++rank) {
    exchange.phases[0].messages.push_back({rank, 0, sizeof(float)});
    exchange.phases[1].messages.push_back({0, rank, sizeof(float)});
  }
  return exchange;
}

/// Bytes of the rank that sends most.
Bytes sent_by(const WorkerTask& task) {
  std::vector<double> sent(at_index(task.ranks));
  for (int rank = 0; rank < task.ranks; ++rank) {
    for (const StepTask& t : task.steps[at_index(rank)]) {
      if (t.exchange < 0) continue;
      for (const Exchange::Phase& phase : task.exchanges[at_index(t.exchange)].phases) {
        for (const Exchange::Message& message : phase.messages) {
          if (message.source == rank) sent[at_index(rank)] += phase.repeat * number(message.bytes);
        }
      }
    }
  }
  return Bytes(*std::ranges::max_element(sent));
}

ReplayPlan plan_of_ranks(const Scenario& scenario, Step step) {
  auto made = std::make_shared<StepOfRanks>(StepOfRanks{std::move(step), {}, {}});
  made->graph = step_graph(made->step);
  std::map<TaskId, std::set<int>> together;  // tasks that several ranks carry out
  for (const StepGraph::Transfer& t : made->graph.transfers) {
    const std::vector<int>& rank_classes = made->step.transfers[at_index(t.transfer)].parts[t.part].rank_classes;
    together[t.task].insert(rank_classes.begin(), rank_classes.end());
  }
  for (const Block& block : made->graph.graph.blocks()) {
    if (block.inside.exposed_copies + block.inside.hidden_copies > Seconds(0.0)) {
      refuse_replay(scenario, "plan.offload", "hosts offload nothing", "no offloading");
    }
  }
  ReplayPlan plan;
  WorkerTask& task = plan.task;
  task.ranks = static_cast<int>(made->step.rank_classes.size());
  for (int rank = 0; rank < task.ranks; ++rank) together[made->graph.synchronised].insert(rank);
  RankTasks all(made->graph.graph, together);
  if (made->step.gradient_norm > Seconds(0.0)) {  // without it, no rank waits for others before its update
    all.moves(made->graph.synchronised, sum_of_numbers(task.ranks));
  }
  for (int rank = 0; rank < task.ranks; ++rank) {
    auto [tasks, numbers] = all.of_rank(rank);
    if (made->step.once_per_step > Seconds(0.0)) {  // the host's work between steps: the optimizer is the last of one
      tasks.push_back({made->graph.compute[at_index(rank)],
                       made->step.once_per_step.value(),
                       -1,
                       {static_cast<int>(tasks.size()) - 1}});
    }
    if (made->step.loader) {  // the next step's samples are made ready beside this step
      tasks.push_back({loading_stream, made->step.loader_interval.value(), -1, {}});
    }
    task.steps.push_back(std::move(tasks));
    made->tasks.push_back(std::move(numbers));
  }
  task.exchanges = all.take_exchanges();
  for (const Exchange& exchange : task.exchanges) {
    for (const Exchange::Phase& phase : exchange.phases) {
      for (const Exchange::Message& message : phase.messages) {
        if (std::max(message.source, message.destination) < task.ranks) continue;
        refuse_replay(scenario, "plan", "messages of this plan pass through a host's memory", "messages between ranks");
      }
    }
  }
  plan.sent = sent_by(task);
  plan.graph = std::move(made);
  return plan;
}

StepTask busy(Seconds time) { return {0, time.value(), -1, {}}; }

/// A step by servers: passes, then all gradients there and all weights back.
ReplayPlan plan_store(const Scenario& scenario, const ParameterStore& store) {
  const Sync& sync = scenario.plan.sync;
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  if (train.loader || train.checkpoint) {
    refuse_replay(scenario, "workload.train", "workers read and write no files", "no loader, no checkpoint");
  }
  if (store.consistency != Sync::Consistency::synchronous) {
    refuse_replay(scenario, "plan.sync.consistency", "schedules wait for every worker",
                  "synchronous; validate/pytorch measures other servers");
  }
  if (sync.overlap) {
    refuse_replay(scenario, "plan.sync.overlap", "workers of a replay push when their backward pass is over", "false");
  }
  ReplayPlan plan;
  WorkerTask& task = plan.task;
  task.ranks = store.worker_count();
  double parameters = 0.0;
  for (const ParameterStore::KeyGroup& group : store.groups) {
    for (const double on_server : group.parameters) parameters += on_server;
  }
  task.elements = static_cast<std::int64_t>(parameters * store.gradient.value() / sizeof(float));
  for (int worker = 0; worker < task.ranks; ++worker) {
    task.steps.push_back(
        {busy(store.compute().total() * store.mean_factor(worker)), {0, 0.0, 0, {}}, busy(store.host_between_steps)});
  }
  plan.sent = Bytes(number(task.elements) * sizeof(float));
  return plan;
}

}  // namespace

void refuse_replay(const Scenario& scenario, const std::string& key, const std::string& got,
                   const std::string& expected) {
  throw ScenarioError(position_of(scenario, key), key, got, expected);
}

Execution StepOfRanks::execution(const std::vector<std::vector<TaskSpan>>& spans) const {
  const std::size_t count = graph.graph.tasks().size();
  Execution execution{std::vector<Seconds>(count), std::vector<Seconds>(count), {}};
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    for (std::size_t i = 0; i < tasks[rank].size(); ++i) {
      Seconds& start = execution.start[at_index(tasks[rank][i])];
      Seconds& finish = execution.finish[at_index(tasks[rank][i])];
      start = std::max(start, Seconds(spans.at(rank).at(i).start));
      finish = std::max(finish, Seconds(spans.at(rank).at(i).end));
      execution.makespan = std::max(execution.makespan, finish);
    }
  }
  return execution;
}

Seconds StepOfRanks::waiting(const Execution& execution) const {
  const Breakdown breakdown = time_use(step, graph, execution, execution.makespan).breakdown;
  return breakdown.exposed_communication + breakdown.pipeline_bubble;
}

ReplayPlan plan_step(const Scenario& scenario) {
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  check_step(scenario, train);
  const Model model = build_model(train.model, build_options(train, scenario.plan));
  const Topology topology(scenario.cluster);
  // Every rank a rank class of its own: each is a process.
  Step step = build_step(scenario, train, model, topology, Recipes::none, InsideLayers::seen, Symmetry::ignored);
  if (uses_store(scenario)) {
    return plan_store(scenario, build_store(scenario, train, model, topology, step));
  }
  ReplayPlan plan = plan_of_ranks(scenario, std::move(step));
  if (train.checkpoint) {
    const CheckpointCost cost = checkpoint_cost(scenario, train, plan.graph->step, topology);
    plan.task.save_every = train.checkpoint->every;
    plan.task.save_seconds = (cost.copy_time + cost.write).value();
  }
  return plan;
}

ReplayPlan plan_collective(const Scenario& scenario) {
  const std::unique_ptr<Job> job = make_job(scenario, Fidelity::flows);
  std::set<int> ranks;
  for (int rank = 0; rank < scenario.cluster.nodes; ++rank) ranks.insert(rank);
  const std::map<TaskId, std::set<int>> together{{0, ranks}};
  RankTasks all(job->graph(), together);
  ReplayPlan plan;
  plan.task.ranks = scenario.cluster.nodes;
  for (const int rank : ranks) plan.task.steps.push_back(all.of_rank(rank).first);
  plan.task.exchanges = all.take_exchanges();
  plan.sent = sent_by(plan.task);
  return plan;
}

}  // namespace foretrain
