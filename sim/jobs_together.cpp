#include "sim/jobs_together.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "model/base/number.hpp"
#include "model/hardware/fabric_routes.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

constexpr int steps_of_longest = 3, most_steps = 500;

/// A job, and where its steps are in the graph of all.
struct RunningJob {
  RunningJob(const Scenario& scenario, Fidelity fidelity, const Executor& execute) : job(make_job(scenario, fidelity)) {
    Seconds makespan;
    const Executor alone = [&](const TaskGraph& graph) {
      Execution execution = execute(graph);
      if (&graph == &job->graph()) makespan = execution.makespan;
      return execution;
    };
    step_alone = result_of(*job, alone).time();
    between = step_alone - makespan;
  }
  std::unique_ptr<Job> job;
  Seconds step_alone;
  Seconds between;  ///< time of a step beside its graph: host work, data stall
  int steps = steps_of_longest;
  std::vector<TaskId> first, last;  ///< of each step: its first task, and the time between it and the next one
};

/// Appends a job's steps to the graph of all, one after the other. `devices`: how many are in it so far.
void append_steps(RunningJob& running, TaskGraph::Builder& builder, int& devices) {
  const TaskGraph& graph = running.job->graph();
  const BlockId between = builder.add_block({"between steps", Category::host, running.between}),
                first_block = between + 1;
  for (const Block& block : graph.blocks()) builder.add_block(block);
  const ResourceId pause =
      builder.add_resource({"between steps", Resource::Kind::host_thread, 0, Resource::Order::at_once});
  int own_devices = 0;
  for (Resource resource : graph.resources()) {
    own_devices = std::max(own_devices, resource.device + 1);
    if (resource.device >= 0) resource.device += devices;
    builder.add_resource(std::move(resource));
  }
  devices += own_devices;
  running.first.clear();
  running.last.clear();
  for (int step = 0; step < running.steps; ++step) {
    std::vector<TaskId> ids, ends;
    for (TaskId task = 0; std::cmp_less(task, graph.tasks().size()); ++task) {
      Task copy = graph.tasks()[at_index(task)];
      copy.block += first_block;
      copy.resource += pause + 1;
      std::vector<TaskId> after;
      for (const TaskId other : graph.predecessors(task)) after.push_back(ids[at_index(other)]);
      if (after.empty() && step > 0) after = {running.last.back()};
      ids.push_back(builder.add_task(copy, after));
      if (graph.successors(task).empty()) ends.push_back(ids.back());
    }
    running.first.push_back(ids.front());
    running.last.push_back(builder.add_task({between, pause}, ends));
  }
}

Seconds end_of(const RunningJob& running, std::size_t step, const Execution& all) {
  return all.finish[at_index(running.last[step])];
}

Seconds start_of(const RunningJob& running, std::size_t step, const Execution& all) {
  return step == 0 ? Seconds(0.0) : end_of(running, step - 1, all);
}

/// The job's step of median length among those that end by `horizon`.
std::size_t median_step(const RunningJob& running, const Execution& all, Seconds horizon) {
  std::vector<std::pair<Seconds, std::size_t>> lengths;
  for (std::size_t step = 0; step < running.last.size(); ++step) {
    const Seconds end = end_of(running, step, all);
    if (step > 0 && end > horizon) break;
    lengths.emplace_back(end - start_of(running, step, all), step);
  }
  std::ranges::sort(lengths);
  return lengths[(lengths.size() - 1) / 2].second;
}

/// One step of the job, from its beginning on.
Execution execution_of(const RunningJob& running, std::size_t step, const Execution& all) {
  const Seconds begin = start_of(running, step, all);
  const std::size_t first = at_index(running.first[step]), tasks = running.job->graph().tasks().size();
  Execution own;
  for (std::size_t task = first; task < first + tasks; ++task) {
    own.start.push_back(all.start[task] - begin);
    own.finish.push_back(all.finish[task] - begin);
    own.makespan = std::max(own.makespan, own.finish.back());
  }
  return own;
}

class Together {
 public:
  Together(const Scenario& scenario, Fidelity fidelity)
      : scenario_(scenario),
        fidelity_(fidelity),
        topology_(draws_routes(scenario.cluster) ? Topology(scenario.cluster, 0) : Topology(scenario.cluster)) {
    const Executor alone = [&](const TaskGraph& graph) {
      return simulate(graph, topology_, fidelity, scenario.background);
    };
    jobs_.emplace_back(scenario, fidelity, alone);
    for (const Scenario& other : scenario.jobs) jobs_.emplace_back(other, fidelity, alone);
    longest_ = static_cast<std::size_t>(std::ranges::max_element(jobs_, {}, &RunningJob::step_alone) - jobs_.begin());
  }

  Result result(Detail detail) {
    // A third more than jobs would need beside a longest one that nothing holds up.
    for (RunningJob& running : jobs_) {
      const double ratio = jobs_[longest_].step_alone / running.step_alone;
      running.steps = std::min(static_cast<int>(std::ceil(ratio * steps_of_longest * 4.0 / 3.0)), most_steps);
    }
    jobs_[longest_].steps = steps_of_longest;
    run();
    while (more_steps()) run();

    const Job& own = *jobs_.front().job;
    const Execution step = execution_of(jobs_.front(), median_step(jobs_.front(), all_, horizon()), all_);
    const Executor execute = [&](const TaskGraph& graph) {
      return &graph == &own.graph() ? step : simulate(graph, topology_, fidelity_, scenario_.background);
    };
    Result result = result_of(own, execute, detail);
    SharedFabric& fabric = result.train()->shared_fabric.emplace();
    fabric.alone = jobs_.front().step_alone;
    for (std::size_t i = 1; i < jobs_.size(); ++i) {
      const std::size_t median = median_step(jobs_[i], all_, horizon());
      const Seconds length = end_of(jobs_[i], median, all_) - start_of(jobs_[i], median, all_);
      fabric.others.push_back({jobs_[i].job->scenario().name, length, jobs_[i].step_alone});
    }
    for (const RunningJob& running : jobs_) {
      if (!stops_early(running)) continue;
      result.warnings.push_back(fmt::format("{} has stopped after {} steps; the longest job's went on without it",
                                            running.job->scenario().name, running.steps));
    }
    if (draws_routes(scenario_.cluster)) {
      result.warnings.emplace_back(
          "with other jobs the fabric's routes are drawn once: another seed gives another step");
    }
    return result;
  }

 private:
  void run() {
    TaskGraph::Builder builder;
    int devices = 0;
    for (RunningJob& running : jobs_) append_steps(running, builder, devices);
    all_ = simulate(std::move(builder).build(), topology_, fidelity_, scenario_.background);
  }

  /// When the longest job has done its steps.
  [[nodiscard]] Seconds horizon() const { return end_of(jobs_[longest_], jobs_[longest_].last.size() - 1, all_); }
  [[nodiscard]] bool stops_early(const RunningJob& running) const {
    return end_of(running, running.last.size() - 1, all_) < horizon() * (1.0 - 1e-9);
  }
  /// Gives jobs that have stopped before the horizon twice as many; false where none may have more.
  bool more_steps() {
    bool more = false;
    for (RunningJob& running : jobs_) {
      if (running.steps == most_steps || !stops_early(running)) continue;
      running.steps = std::min(2 * running.steps, most_steps);
      more = true;
    }
    return more;
  }

  const Scenario& scenario_;
  Fidelity fidelity_;
  Topology topology_;
  std::vector<RunningJob> jobs_;  ///< the scenario's own first
  std::size_t longest_ = 0;
  Execution all_;
};

}  // namespace

Result run_together(const Scenario& scenario, Fidelity fidelity, Detail detail) {
  return Together(scenario, fidelity).result(detail);
}

}  // namespace foretrain
