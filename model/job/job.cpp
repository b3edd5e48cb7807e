#include "model/job/job.hpp"

#include <algorithm>
#include <stdexcept>
#include <variant>

#include "model/base/error.hpp"
#include "model/base/words.hpp"
#include "model/graph/timeline.hpp"
#include "model/hardware/network_limits.hpp"
#include "model/job/job_kinds.hpp"
#include "model/job/routing_draws.hpp"
#include "model/job/storage_traffic.hpp"
#include "model/parameter_server/store.hpp"

namespace foretrain {

namespace {

/// Storage that the workload states; nothing where it is the node's.
const Storage* storage_of(const Workload& workload) {
  if (const auto* storage = std::get_if<StorageWorkload>(&workload)) return &storage->storage;
  const DataLoader* loader = nullptr;
  if (const auto* alone = std::get_if<LoaderWorkload>(&workload)) loader = &alone->loader;
  if (const auto* train = std::get_if<TrainWorkload>(&workload); train && train->loader) loader = &*train->loader;
  return loader != nullptr && loader->storage ? &*loader->storage : nullptr;
}

std::unique_ptr<Job> job_of_kind(const Scenario& scenario, Fidelity fidelity, Recipes recipes) {
  const Workload& workload = scenario.workload;
  if (std::holds_alternative<TrainWorkload>(workload)) {
    const bool servers = uses_store(scenario) && recipes == Recipes::none;
    return servers ? make_server_job(scenario, fidelity) : make_train_job(scenario, fidelity, recipes);
  }
  if (std::holds_alternative<CollectiveWorkload>(workload)) return make_collective_job(scenario, fidelity, recipes);
  if (std::holds_alternative<LoaderWorkload>(workload)) return make_loader_job(scenario, fidelity);
  if (std::holds_alternative<TasksWorkload>(workload)) return make_task_list_job(scenario, fidelity, recipes);
  return make_operator_job(scenario, fidelity, recipes);
}

/// Whether the number was read while the result was worked out; what does not note its reads counts as read.
bool was_read(const Constant& constant, const ReadSet& reads) {
  if (const ConstantRow* row = find_constant(constant.name)) {
    return reads[static_cast<std::size_t>(row - calibration_rows().data())];
  }
  for (const bool tensor : {false, true}) {
    const std::string_view rate = tensor ? ".tensor_rate." : ".vector_rate.";
    const std::size_t at = constant.name.find(rate);
    if (at == std::string::npos) continue;
    const auto word = std::ranges::find(names_of<Precision>, constant.name.substr(at + rate.size()));
    return word == names_of<Precision>.end() ||
           reads[Gpu::rate_number(static_cast<std::size_t>(word - names_of<Precision>.begin()), tensor)];
  }
  return true;
}

/// Whether work on the GPUs alone, or on one machine, changes with a figure of its node: not with storage that it does
/// not read, the host's cores that it does not compute on, and cards that it does not send over.
bool concerns(const Constant& figure, const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const auto is_of = [&](std::string_view part) { return figure.name.find(part) != std::string::npos; };
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train == nullptr && !std::holds_alternative<CollectiveWorkload>(scenario.workload)) {
    return !std::holds_alternative<OperatorWorkload>(scenario.workload) ||
           figure.name.starts_with(cluster.node.gpu.name);
  }
  if (cluster.node.gpu.processor || (train != nullptr && (train->loader || uses_store(scenario)))) return true;
  if (is_of(".storage.")) return false;
  if (is_of(".network.")) return cluster.nodes > 1 || !cluster.groups.empty();
  const bool host_works = train != nullptr && scenario.plan.offload.any();
  return host_works || !is_of(".cpu.") || is_of(".cpu.memory_bandwidth");
}

}  // namespace

Result Job::named_result() const {
  Result result;
  result.scenario = scenario_.name;
  result.fidelity = fidelity_;
  const auto add = [&](const std::vector<Constant>& constants) {
    for (const Constant& constant : constants) {
      if (std::ranges::find(result.provenance, constant) == result.provenance.end()) {
        result.provenance.push_back(constant);
      }
    }
  };
  if (scenario_.cluster.groups.empty()) add(scenario_.cluster.node.constants);  // those of its GPU among them
  for (const NodeGroup& group : scenario_.cluster.groups) add(group.node.constants);
  std::erase_if(result.provenance, [&](const Constant& figure) { return !concerns(figure, scenario_); });
  if (std::holds_alternative<HostWorkload>(scenario_.workload)) add(scenario_.cluster.node.cpu.hierarchy_constants);
  if (const Storage* storage = storage_of(scenario_.workload)) add(storage->constants);
  if (const auto* train = std::get_if<TrainWorkload>(&scenario_.workload); train != nullptr && train->checkpoint) {
    add(train->checkpoint->storage.constants);
  }
  add(scenario_.cluster.price_constants);
  if (const auto& failures = scenario_.cluster.failures) {
    add(failures->constants);
    if (const auto* train = std::get_if<TrainWorkload>(&scenario_.workload)) add(train->recovery->constants);
  }
  if (scenario_.cluster.energy) add(scenario_.cluster.energy->constants);
  const std::vector<Constant>& of_models = scenario_.calibration.constants;
  result.provenance.insert(result.provenance.end(), of_models.begin(), of_models.end());
  result.warnings = scenario_.calibration.warnings;
  result.trainer = scenario_.trainer;
  result.traits = scenario_.traits;
  for (std::string& limit : network_limits(scenario_.cluster, topology_)) result.warnings.push_back(std::move(limit));
  if (fidelity_ == Fidelity::estimate && !scenario_.jobs.empty()) {
    result.warnings.emplace_back("an estimate does not see the other jobs on the fabric: use --fidelity flows");
  }
  return result;
}

std::unique_ptr<Job> make_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes) {
  try {
    return job_of_kind(scenario, fidelity, recipes);
  } catch (const ImpossiblePlan& error) {
    std::vector<std::string> keys{error.key()};
    // Where the hardware or a schedule cannot do it, the scenario's synchronisation asked for it.
    if (error.key().empty()) {
      keys = {"workload.collective.algorithm", "plan.sync.algorithm", "workload.collective", "plan.sync"};
    }
    for (const std::string& key : keys) {
      const auto where = scenario.where.find(key);
      if (where != scenario.where.end()) throw ScenarioError(where->second, key, error.what(), "");
    }
    throw ScenarioError({}, error.key(), error.what(), "");
  }
}

Result result_of(const Job& job, const Executor& execute, Timeline timeline) {
  const TaskGraph& graph = job.graph();
  const Execution execution = execute(graph);
  Result result = job.read(execution, execute);
  const ReadSet reads = reads_so_far() | job.scenario().calibration.read_before;
  std::erase_if(result.provenance, [&](const Constant& constant) { return !was_read(constant, reads); });
  const bool single = graph.tasks().size() == 1 && !graph.block_of(0).flows;
  if (timeline == Timeline::fill && !single) result.timeline = timeline_of(graph, execution);
  return result;
}

Result estimate(const Scenario& scenario) {
  const Reading reading;
  return beside_storage(scenario, [](const Scenario& own, double longer) {
    const std::unique_ptr<Job> job = make_job(own, Fidelity::estimate);
    job->set_writing(longer);
    return result_over_fabric(*job, [&](const TaskGraph& graph, const Topology& topology) {
      return run_uncontended(graph, job->topology(), topology, own.background);
    });
  });
}

}  // namespace foretrain
