#include "sim/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/job/storage_traffic.hpp"
#include "sim/collective_run.hpp"
#include "sim/jobs_together.hpp"
#include "sim/moving_flows.hpp"
#include "sim/network_plan.hpp"

namespace foretrain {

namespace {

NetworkPlan make_plan(const Topology& topology, std::span<const BackgroundFlow> background) {
  NetworkPlan plan(topology);
  for (const Flow& route : background_flows(background, topology)) plan.add_background(route);
  return plan;
}

/// Throws UsageError where every step of every collective is more than can be simulated. Messages over drawn routes are
/// not alike: each changes the rates of many others.
void check_steps(const TaskGraph& graph, const Topology& topology) {
  const double most_messages = topology.draws_routes() ? 1e7 : 1e8;  // some 100 seconds
  constexpr double most_at_once = 1e6;                               // some seconds to make them ready
  double all = 0.0, at_once = 0.0;
  std::vector<bool> counted(graph.blocks().size());
  for (const Task& task : graph.tasks()) {
    const std::optional<LoweredCollective>& lowered = graph.blocks()[at_index(task.block)].flows;
    if (!lowered) continue;
    for (const LoweredCollective::Phase& phase : lowered->phases) {
      all += number(phase.flows.size()) * phase.repeat;
      if (!counted[at_index(task.block)]) at_once += number(phase.flows.size());
    }
    counted[at_index(task.block)] = true;
  }
  if (all <= most_messages && at_once <= most_at_once) return;
  throw UsageError(fmt::format(
      "--fidelity steps would simulate {:.2g} messages, {:.2g} of them different, and can {:.0e}, {:.0e} of them "
      "different; --fidelity flows moves those of a collective together",
      all, at_once, most_messages, most_at_once));
}

/// One program per block that has flows and that some task uses. The plan is then complete.
std::vector<std::optional<CollectiveProgram>> make_programs(const TaskGraph& graph, Fidelity fidelity,
                                                            NetworkPlan& plan) {
  std::vector<std::optional<CollectiveProgram>> programs(graph.blocks().size());
  for (const Task& task : graph.tasks()) {
    auto& program = programs[at_index(task.block)];
    const std::optional<LoweredCollective>& flows = graph.blocks()[at_index(task.block)].flows;
    if (!flows || program) continue;
    program = fidelity == Fidelity::steps ? steps_program(*flows, plan) : flows_program(*flows, plan);
  }
  plan.complete();
  return programs;
}

class FlowInterconnect final : public Interconnect {
 public:
  FlowInterconnect(const TaskGraph& graph, const Topology& topology, Fidelity fidelity,
                   std::span<const BackgroundFlow> background, bool folding)
      : graph_(graph),
        plan_(make_plan(topology, background)),
        programs_(make_programs(graph, fidelity, plan_)),
        runs_(graph.resources().size()),
        flows_(plan_, folding && fidelity != Fidelity::steps) {}  // each message is one of its own kind

  std::optional<Seconds> begin(TaskId task, Seconds now, EventQueue& events) override {
    const auto& program = programs_[at_index(graph_.tasks()[at_index(task)].block)];
    run_of(task).emplace(*program, events, flows_, task).begin(now);
    return ends_if_finished(task) ? std::optional(now) : std::nullopt;
  }

  bool handle(const Event& event, Seconds now, EventQueue& events) override {
    if (event.kind == Event::Kind::rates_change) {
      flows_.change_rates(event, now, events);
      return false;
    }
    if (event.kind == Event::Kind::flows_start) {
      run_of(event.task)->start_flows(event.part, now);
    } else {
      if (!flows_.end(event)) return false;
      run_of(event.task)->end_flows(event.part, now);
    }
    return ends_if_finished(event.task);
  }

 private:
  /// The run of the task's resource, which has one at a time.
  [[nodiscard]] std::optional<CollectiveRun>& run_of(TaskId task) {
    return runs_[at_index(graph_.tasks()[at_index(task)].resource)];
  }
  bool ends_if_finished(TaskId task) {
    if (!run_of(task)->finished()) return false;
    run_of(task).reset();
    return true;
  }

  const TaskGraph& graph_;
  NetworkPlan plan_;
  std::vector<std::optional<CollectiveProgram>> programs_;  ///< by block
  std::vector<std::optional<CollectiveRun>> runs_;          ///< by resource
  MovingFlows flows_;
};

}  // namespace

Execution simulate(const TaskGraph& graph, const Topology& topology, Fidelity fidelity,
                   std::span<const BackgroundFlow> background, bool folding) {
  if (fidelity == Fidelity::estimate) throw InternalError("fidelity estimate is computed, not simulated");
  if (fidelity == Fidelity::steps) check_steps(graph, topology);
  FlowInterconnect interconnect(graph, topology, fidelity, background, folding);
  return run(graph, interconnect);
}

ExecutorOn executor_on(const Job& job, Fidelity fidelity) {
  if (fidelity == Fidelity::steps) check_steps(job.graph(), job.topology());  // before routes are drawn
  return [&job, fidelity](const TaskGraph& graph, const Topology& topology) {
    const std::vector<BackgroundFlow>& background = job.scenario().background;
    if (fidelity == Fidelity::estimate) return run_uncontended(graph, job.topology(), topology, background);
    return simulate(graph, topology, fidelity, background);
  };
}

Executor executor_of(const Job& job, Fidelity fidelity) {
  const ExecutorOn execute = executor_on(job, fidelity);
  const Topology topology = job.topology().draws_routes() ? draw_routes(job, execute).median : job.topology();
  return [execute, topology](const TaskGraph& graph) { return execute(graph, topology); };
}

Result predict(const Scenario& scenario, Fidelity fidelity, Detail detail) {
  const ReadScope reading;
  const auto alone = [&](const Scenario& own, double longer) {
    const std::unique_ptr<Job> job = make_job(own, fidelity);
    job->set_writing(longer);
    return result_over_fabric(*job, executor_on(*job, fidelity), detail);
  };
  const bool together = !scenario.jobs.empty() && fidelity != Fidelity::estimate;
  Result result = together ? run_together(scenario, fidelity, detail) : beside_storage(scenario, alone);
  finish(scenario, detail, result);
  return result;
}

}  // namespace foretrain
