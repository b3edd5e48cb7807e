#include <optional>
#include <utility>

#include "model/job/job_kinds.hpp"
#include "model/job/training_result.hpp"
#include "model/loading/loader_graph.hpp"
#include "model/parallelism/layout.hpp"
#include "model/training/breakdown.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

class TrainJob final : public Job {
 public:
  TrainJob(const Scenario& scenario, Fidelity fidelity, Recipes recipes)
      : Job(scenario, fidelity),
        model_(build_model(train().model, build_options(train(), scenario.plan))),
        step_(build_step(scenario, train(), model_, topology_, recipes)),
        graph_(step_graph(step_)) {}

  [[nodiscard]] const TaskGraph& graph() const override { return graph_.graph; }

  [[nodiscard]] Result read(const Execution& execution, const Executor& execute) const override {
    const StepGraph::Times times = times_of(graph_, execution);
    const std::optional<Seconds> loader = loader_interval_beside(times, execute);
    const Breakdown breakdown = breakdown_of(step_, times, loader);
    Result result = named_result();
    fill_training(result, scenario_, topology_, model_, step_, step_time(step_, times, loader), breakdown,
                  communication_of(step_, breakdown));
    return result;
  }

 private:
  [[nodiscard]] const TrainWorkload& train() const { return std::get<TrainWorkload>(scenario_.workload); }

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
