#include <optional>
#include <utility>

#include "model/base/statistics.hpp"
#include "model/base/words.hpp"
#include "model/collectives/contention.hpp"
#include "model/job/job_kinds.hpp"
#include "model/job/training_result.hpp"
#include "model/loading/loader_graph.hpp"
#include "model/parallelism/layout.hpp"
#include "model/training/breakdown.hpp"
#include "model/training/checkpoint.hpp"
#include "model/training/jitter.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

Seconds mean_of(const std::vector<Seconds>& times) {
  Seconds sum;
  for (const Seconds time : times) sum += time;
  return sum / static_cast<double>(times.size());
}

/// `steps` without what a step takes beyond its graph, which is the same in all.
void set_spread(const std::vector<Seconds>& steps, Result& result) {
  const Seconds beside = result.train->step_time - mean_of(steps);
  std::vector<double> values;
  values.reserve(steps.size());
  for (const Seconds step : steps) values.push_back((step + beside).value());
  result.train->spread = TrainResult::Spread{Seconds(quantile(values, 0.5)), Seconds(quantile(values, 0.9)),
                                             Seconds(quantile(values, 0.99))};
}

class TrainJob final : public Job {
 public:
  TrainJob(const Scenario& scenario, Fidelity fidelity, Recipes recipes)
      : Job(scenario, fidelity),
        model_(build_model(train().model, build_options(train(), scenario.plan))),
        step_(build_step(scenario, train(), model_, topology_, recipes)),
        graph_(step_graph(step_)) {}

  [[nodiscard]] const TaskGraph& graph() const override { return graph_.graph; }

  [[nodiscard]] Result read(const Execution& execution, const Executor& execute) const override {
    StepGraph::Times times = times_of(graph_, execution);
    const Seconds alone = times.end;
    std::vector<Seconds> steps;
    if (const std::optional<Jitter>& jitter = scenario_.cluster.jitter) {
      steps = steps_with_jitter(step_, *jitter, execute);
      const Seconds waiting = mean_of(steps) - times.end;
      times.synchronised += waiting;
      times.end += waiting;
    }
    const std::optional<Seconds> loader = loader_interval_beside(times, execute);
    const Breakdown breakdown = breakdown_of(step_, times, loader);
    Result result = named_result();
    fill_training(result, scenario_, topology_, model_, step_, step_time(step_, times, loader), breakdown,
                  communication_of(step_, graph_, execution, breakdown));
    if (!steps.empty()) set_spread(steps, result);
    if (train().checkpoint) add_checkpoints(*train().checkpoint, alone, execute, result);
    return result;
  }

 private:
  [[nodiscard]] const TrainWorkload& train() const { return std::get<TrainWorkload>(scenario_.workload); }

  /// `alone`: the step's graph without a checkpoint.
  void add_checkpoints(const Checkpoint& checkpoint, Seconds alone, const Executor& execute, Result& result) const {
    const CheckpointCost cost = checkpoint_cost(scenario_, train(), step_, topology_);
    const Seconds copy = uncontended_time(cost.copy, topology_, scenario_.background);
    Seconds with_copy = alone + copy;
    if (checkpoint.mode == Checkpoint::Mode::asynchronous) {
      Step step = step_;
      step.checkpoint = Step::Transfer::Part{cost.copy, copy, {}};
      with_copy = execute(step_graph(step).graph).makespan;
    }
    TrainResult& train = *result.train;
    const CheckpointedStep step = checkpointed_step(checkpoint, cost, train.step_time, alone, with_copy);
    train.checkpoints = TrainResult::Checkpoints{
        checkpoint.every, std::string(name(checkpoint.mode)), cost.state, copy, cost.write, step.step, step.mean};
    const double longer = step.mean / train.step_time;
    if (train.time_to_train) *train.time_to_train *= longer;
    if (result.cost_usd) *result.cost_usd *= longer;
  }

  /// Time between steps that the input pipeline allows, with the step as its consumer; nothing without a loader.
  [[nodiscard]] std::optional<Seconds> loader_interval_beside(const StepGraph::Times& times,
                                                              const Executor& execute) const {
    if (!step_.loader) return std::nullopt;
    const LoweredCollective* copy = step_.loader_copy.phases.empty() ? nullptr : &step_.loader_copy;
    const LoaderGraph line = build_loader_graph(*step_.loader, times.end + step_.once_per_step, copy, fidelity_);
    return loader_interval(line, execute(line.graph)) + step_.loader->restart;
  }

  Model model_;
  Step step_;
  StepGraph graph_;
};

}  // namespace

std::unique_ptr<Job> make_train_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes) {
  return std::make_unique<TrainJob>(scenario, fidelity, recipes);
}

}  // namespace foretrain
