#include "model/job/job.hpp"

#include <stdexcept>
#include <variant>

#include "model/base/error.hpp"
#include "model/graph/timeline.hpp"
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

}  // namespace

Result Job::named_result() const {
  Result result;
  result.scenario = scenario_.name;
  result.fidelity = fidelity_;
  const auto add = [&](const std::vector<Constant>& constants) {
    result.provenance.insert(result.provenance.end(), constants.begin(), constants.end());
  };
  const auto add_node = [&](const Node& node) {
    add(node.gpu.constants);
    add(node.constants);
  };
  if (scenario_.cluster.groups.empty()) add_node(scenario_.cluster.node);
  for (const NodeGroup& group : scenario_.cluster.groups) add_node(group.node);
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
  add(scenario_.calibration.constants);
  result.warnings = scenario_.calibration.warnings;
  if (fidelity_ == Fidelity::estimate && !scenario_.jobs.empty()) {
    result.warnings.emplace_back("an estimate does not see the other jobs on the fabric: use --fidelity flows");
  }
  return result;
}

std::unique_ptr<Job> make_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes) {
  try {
    return job_of_kind(scenario, fidelity, recipes);
  } catch (const std::invalid_argument& error) {
    // What the hardware or a schedule cannot do was asked for by the scenario: point at its synchronisation.
    for (const char* key :
         {"workload.collective.algorithm", "plan.sync.algorithm", "workload.collective", "plan.sync"}) {
      const auto where = scenario.where.find(key);
      if (where != scenario.where.end()) throw ScenarioError(where->second, key, error.what(), "");
    }
    throw UsageError(error.what());
  }
}

Result result_of(const Job& job, const Executor& execute, Timeline timeline) {
  const TaskGraph& graph = job.graph();
  const Execution execution = execute(graph);
  Result result = job.read(execution, execute);
  const bool single = graph.tasks().size() == 1 && !graph.block_of(0).flows;
  if (timeline == Timeline::fill && !single) result.timeline = timeline_of(graph, execution);
  return result;
}

Result estimate(const Scenario& scenario) {
  return beside_storage(scenario, [](const Scenario& own, double longer) {
    const std::unique_ptr<Job> job = make_job(own, Fidelity::estimate);
    job->set_writing(longer);
    return result_over_fabric(*job, [&](const TaskGraph& graph, const Topology& topology) {
      return run_uncontended(graph, job->topology(), topology, own.background);
    });
  });
}

}  // namespace foretrain
