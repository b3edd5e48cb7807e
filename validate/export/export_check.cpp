// Check of a scenario for the GPUs of one machine.
#include <fmt/format.h>

#include <set>

#include "model/base/words.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/tasks/task_blocks.hpp"
#include "validate/export/export.hpp"

namespace foretrain {

namespace {

class Checker {
 public:
  explicit Checker(const Scenario& scenario) : scenario_(scenario) {}

  void operator()(const TrainWorkload& train) const {
    one_machine();
    const Plan& plan = scenario_.plan;
    const std::pair<const char*, int> dimensions[] = {
        {"tensor", plan.tensor}, {"pipeline", plan.pipeline}, {"context", plan.context}, {"expert", plan.expert}};
    for (const auto& [key, size] : dimensions) {
      if (size > 1) refuse(fmt::format("plan.{}", key), std::to_string(size), "1: replays are data parallel alone");
    }
    if (plan.zero > 0) refuse("plan.zero", std::to_string(plan.zero), "0: replays shard nothing");
    if (plan.offload.any()) refuse("plan.offload", "nothing is offloaded in replays", "none");
    if (train.loader) refuse("workload.train.loader", "replays load no data", "leave it out: the data are there");
    if (train.data) refuse("workload.train.data", "samples that differ", "leave it out: samples of one length");
    if (train.compute_spread > 0.0) refuse("workload.train.compute_spread", "workers that differ", "0");
    synchronisation();
  }
  void operator()(const CollectiveWorkload& collective) const {
    one_machine();
    if (collective.operation != CollectiveOperation::all_reduce) {
      refuse("workload.collective.operation", std::string(name(collective.operation)),
             "all_reduce; foretrain-gpu measure --only collective runs the others");
    }
    if (collective.groups > 1) refuse("workload.collective.groups", std::to_string(collective.groups), "1");
    synchronisation();
  }
  void operator()(const OperatorWorkload&) const {}
  void operator()(const TasksWorkload& tasks) const {
    std::set<std::string> threads;
    for (const ScenarioTask& task : tasks.tasks) {
      if (device_of(task.on).starts_with("cpu")) threads.insert(task.on);
      if (!task.enqueued_by.empty()) threads.insert(task.enqueued_by);
      const std::string key = "workload.tasks." + task.id;
      if (threads.size() > 1) {
        throw ScenarioError(task.where, key, "a second host thread",
                            "one: the same of " + *threads.begin() + " and " + *threads.rbegin() + " everywhere");
      }
      std::vector<std::string> places = {task.on};
      if (const CopyWork* copy = task.copy()) places.insert(places.end(), {copy->from, copy->to});
      for (const std::string& place : places) {
        if (place == "disk") throw ScenarioError(task.where, key, "a disk", "what GPUs and one host thread do");
        check_node(task, key, place);
      }
    }
  }
  template <typename Other>
  void operator()(const Other&) const {
    refuse("workload", "this kind of work is not run on GPUs", "train, collective, operator or tasks");
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& got, const std::string& expected) const {
    throw ScenarioError(position_of(scenario_, key), key, got, expected);
  }

  void one_machine() const {
    if (scenario_.cluster.nodes > 1) {
      refuse("cluster.nodes", fmt::format("{} machines", scenario_.cluster.nodes), "1: replays run on one machine");
    }
    if (!scenario_.background.empty()) refuse("background", "traffic of others", "leave it out");
  }

  void synchronisation() const {
    const Sync& sync = scenario_.plan.sync;
    switch (sync.algorithm) {
      case SyncAlgorithm::automatic:
      case SyncAlgorithm::ring:
      case SyncAlgorithm::multi_ring:
      case SyncAlgorithm::double_tree:
      case SyncAlgorithm::in_network:
      case SyncAlgorithm::naive:
      case SyncAlgorithm::parameter_server:
        break;
      default:
        refuse("plan.sync.algorithm", std::string(name(sync.algorithm)),
               "auto (NCCL's choice), naive or parameter_server");
    }
    if (sync.consistency != Sync::Consistency::synchronous) {
      refuse("plan.sync.consistency", "replays wait for all workers", "synchronous");
    }
    if (sync.placement == ServerPlacement::dedicated && has_servers(sync.algorithm)) {
      refuse("plan.sync.placement", "dedicated", "cpu, gpu or colocated: replays run on one machine");
    }
    if (sync.slow_workers.count > 0) refuse("plan.sync.slow_workers", "workers that differ", "leave it out");
    if (sync.compression.needs_whole_gradient()) {
      refuse("plan.sync.compression", "gradients are not gathered in replays", "none, fp16 or bf16");
    }
  }

  void check_node(const ScenarioTask& task, const std::string& key, const std::string& place) const {
    if (!place.starts_with("gpu")) return;
    const int gpu = std::stoi(place.substr(3));
    if (gpu < scenario_.cluster.gpus_per_node) return;
    throw ScenarioError(task.where, key, place + " is in another machine",
                        fmt::format("gpu0 to gpu{}", scenario_.cluster.gpus_per_node - 1));
  }

  const Scenario& scenario_;
};

}  // namespace

void check_gpu_replay(const Scenario& scenario) { std::visit(Checker(scenario), scenario.workload); }

}  // namespace foretrain
