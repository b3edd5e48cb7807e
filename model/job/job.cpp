#include "model/job/job.hpp"

#include <fmt/format.h>

#include <variant>

#include "model/base/error.hpp"
#include "model/base/reads.hpp"
#include "model/graph/timeline.hpp"
#include "model/hardware/check.hpp"
#include "model/job/calibrated_uncertainty.hpp"
#include "model/job/job_kinds.hpp"
#include "model/job/published_uncertainty.hpp"
#include "model/job/routing_draws.hpp"
#include "model/job/storage_traffic.hpp"
#include "model/job/training_outlook.hpp"
#include "model/memory/memory.hpp"
#include "model/parameter_server/store.hpp"

namespace foretrain {

namespace {

std::unique_ptr<Job> job_of_kind(const Scenario& scenario, Fidelity fidelity, Recipes recipes, InsideLayers inside) {
  const Workload& workload = scenario.workload;
  if (std::holds_alternative<TrainWorkload>(workload)) {
    const bool servers = uses_store(scenario) && recipes == Recipes::none;
    return servers ? make_server_job(scenario, fidelity) : make_train_job(scenario, fidelity, recipes, inside);
  }
  if (std::holds_alternative<CollectiveWorkload>(workload)) return make_collective_job(scenario, fidelity, recipes);
  if (std::holds_alternative<LoaderWorkload>(workload)) return make_loader_job(scenario, fidelity);
  if (std::holds_alternative<TasksWorkload>(workload)) return make_task_list_job(scenario, fidelity, recipes);
  return make_operator_job(scenario, fidelity, recipes);
}

/// Before all other warnings, with remedies where more than numbers are asked for.
void warn_of_memory(const Scenario& scenario, Detail detail, Result& result) {
  const MemoryFootprint& memory = result.train()->memory;
  if (memory.fits()) return;
  const Cluster& cluster = scenario.cluster;
  const std::string where = cluster.groups.empty() ? "" : fmt::format(" of node {} and its like", memory.node);
  std::vector<std::string> warnings = {fmt::format(
      "{}: {:.1f} GB needed, {:.1f} GB on {}{}", memory.fits_barely() ? "fits barely" : "does not fit",
      memory.total().value() / 1e9, memory.capacity.value() / 1e9, cluster.node_at(memory.node).gpu.name, where)};
  if (detail != Detail::numbers) {
    const std::vector<std::string> remedies = remedies_for_memory(scenario, std::get<TrainWorkload>(scenario.workload));
    warnings.insert(warnings.end(), remedies.begin(), remedies.end());
  }
  result.warnings.insert(result.warnings.begin(), warnings.begin(), warnings.end());
}

}  // namespace

Result Job::named_result() const {
  Result result;
  result.scenario = scenario_.name;
  result.fidelity = fidelity_;
  result.warnings = scenario_.assumed;
  const std::vector<std::string>& limits = scenario_.calibration.warnings;
  result.warnings.insert(result.warnings.end(), limits.begin(), limits.end());
  for (std::string& limit : network_limits(scenario_.cluster, topology_)) result.warnings.push_back(std::move(limit));
  if (fidelity_ == Fidelity::estimate && !scenario_.jobs.empty()) {
    result.warnings.emplace_back("an estimate does not see the other jobs on the fabric: use --fidelity flows");
  }
  return result;
}

std::unique_ptr<Job> make_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes, InsideLayers inside) {
  try {
    return job_of_kind(scenario, fidelity, recipes, inside);
  } catch (const ImpossiblePlan& error) {
    std::vector<std::string> keys{error.key()};
    // If the hardware or a schedule cannot do it, the scenario's synchronisation asked for it.
    if (error.key().empty()) {
      keys = {"workload.collective.algorithm", "plan.sync.algorithm", "workload.collective", "plan.sync"};
    }
    for (const std::string& key : keys) {
      const SourcePosition* where = scenario.where.find(key);
      if (where != nullptr) throw ScenarioError(*where, key, error.what(), "");
    }
    throw ScenarioError({}, error.key(), error.what(), "");
  }
}

Result result_of(const Job& job, const Executor& execute, Detail detail) {
  const TaskGraph& graph = job.graph();
  const Execution execution = execute(graph);
  Result result = job.read(execution, execute);
  const bool single = graph.tasks().size() == 1 && !graph.block_of(0).flows;
  if (detail == Detail::timeline && !single) result.timeline = timeline_of(graph, execution);
  return result;
}

void finish(const Scenario& scenario, Detail detail, Result& result) {
  const bool calibrated = detail != Detail::numbers && set_calibrated_uncertainty(scenario, result);
  if (!calibrated && !set_learned_uncertainty(scenario, result)) set_published_uncertainty(scenario, result);
  TrainResult* train = result.train();
  if (train != nullptr) {
    add_bill(scenario, result);
    warn_of_memory(scenario, detail, result);
  }
  if (detail == Detail::numbers) return;
  result.provenance = provenance_of(scenario);
  result.settings = settings_of(scenario);
  if (train == nullptr) return;
  train->trainer = scenario.trainer;
  train->framework_settings = scenario.framework_settings;
}

Result estimate(const Scenario& scenario) {
  const ReadScope reading;
  Result result = beside_storage(scenario, [](const Scenario& own, double longer) {
    const std::unique_ptr<Job> job = make_job(own, Fidelity::estimate);
    job->set_writing(longer);
    return result_over_fabric(*job, [&](const TaskGraph& graph, const Topology& topology) {
      return run_uncontended(graph, job->topology(), topology, own.background);
    });
  });
  finish(scenario, Detail::numbers, result);
  return result;
}

Seconds estimated_time(const Scenario& scenario) {
  const ReadScope reading;
  const std::optional<Seconds> of_graph = uses_store(scenario) ? std::nullopt : time_of_graph(scenario);
  return of_graph ? *of_graph : estimate(scenario).time();
}

}  // namespace foretrain
