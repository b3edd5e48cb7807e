// A scenario made ready for an executor: hardware graph, task graph, and the way back from times to a result. All
// executors start and end here, so that their answers differ in the times alone.
#pragma once

#include <optional>
#include <span>
#include <variant>

#include "model/cost/loader.hpp"
#include "model/graph/recipe.hpp"
#include "model/training/step.hpp"
#include "model/training/step_times.hpp"
#include "model/tasks/task_list.hpp"
#include "model/hardware/topology.hpp"
#include "model/parameter_server/server_graph.hpp"
#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

struct PreparedTrain {
  Model model;
  Step step;
  std::optional<ParameterStore> store;  ///< gradients go through parameter servers key by key
};
struct PreparedCollective {
  CollectiveCall call;
  LoweredCollective lowered;
};
struct PreparedOperator {
  Seconds time;
  Flops flops;
  Bytes bytes;
  std::string bound;
  std::optional<Seconds> per_access = std::nullopt;     ///< of a walk over memory
  std::optional<OperatorMemory> memory = std::nullopt;  ///< attention only
};

struct PreparedLoader {
  LoaderPipeline pipeline;
  LoweredCollective copy;  ///< of a batch; no phases: a fixed time
  Bytes bytes;             ///< of a batch as it lies in storage
};

class PreparedScenario {
 public:
  /// Builds and costs everything that does not depend on the executor. Throws ScenarioError or UsageError. The scenario
  /// must outlive this.
  explicit PreparedScenario(const Scenario& scenario, Recipes recipes = Recipes::none);

  [[nodiscard]] std::span<const BackgroundFlow> background() const { return scenario_.background; }
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const PreparedTrain* train() const { return std::get_if<PreparedTrain>(&work_); }
  [[nodiscard]] const PreparedCollective* collective() const { return std::get_if<PreparedCollective>(&work_); }
  [[nodiscard]] const TaskList* tasks() const { return std::get_if<TaskList>(&work_); }

  [[nodiscard]] const PreparedLoader* loader() const { return std::get_if<PreparedLoader>(&work_); }

  /// A collective alone as a graph of one task.
  [[nodiscard]] TaskGraph collective_graph() const;
  /// An operator of a GPU, and all its repetitions, as a graph of one task.
  [[nodiscard]] TaskGraph operator_graph() const;

  // From an executor's times to the result.
  [[nodiscard]] StepResult train_result(const StepTimes& times, Fidelity fidelity) const;
  /// For a train() with a store.
  [[nodiscard]] StepResult server_result(const ServerTimes& times, Fidelity fidelity) const;
  [[nodiscard]] StepResult collective_result(Seconds time, Fidelity fidelity) const;
  [[nodiscard]] StepResult tasks_result(const Execution& execution, Fidelity fidelity) const;
  [[nodiscard]] StepResult operator_result(Fidelity fidelity) const;
  /// A loader alone: `time` between two batches.
  [[nodiscard]] StepResult loader_result(Seconds time, Fidelity fidelity) const;

 private:
  /// The parts of a training's result that an executor finds.
  struct StepParts {
    Seconds step_time;
    Breakdown breakdown;
    std::map<std::string, CommunicationTime> communication;
  };
  [[nodiscard]] StepResult empty_result(Fidelity fidelity) const;
  [[nodiscard]] StepResult step_result(StepParts parts, Fidelity fidelity) const;

  const Scenario& scenario_;
  Recipes recipes_;
  Topology topology_;
  std::variant<std::monostate, PreparedTrain, PreparedCollective, PreparedOperator, TaskList, PreparedLoader> work_;
};

}  // namespace foretrain
