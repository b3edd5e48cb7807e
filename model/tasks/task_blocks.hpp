// Entries of workload.tasks as blocks with their costs.
#pragma once

#include <string>
#include <vector>

#include "model/cost/launches.hpp"
#include "model/graph/recipe.hpp"
#include "model/graph/task_graph.hpp"
#include "model/hardware/topology.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// The device part of "gpu3:stream1" is "gpu3".
std::string device_of(const std::string& place);
/// Whether a place is a queue of kernels, and not a copy engine, a host thread or a disk.
bool is_stream(const std::string& place);

class TaskBlocks {
 public:
  TaskBlocks(const Scenario& scenario, const Topology& topology, Recipes recipes = Recipes::none)
      : scenario_(scenario), topology_(topology), recipes_(recipes) {}

  /// GPU or host memory. Throws ScenarioError at the task for a device that is not there.
  [[nodiscard]] EndpointId endpoint(const ScenarioTask& task, const std::string& device, const std::string& key,
                                    int nearest_gpu) const;
  /// A task of its own, which no host thread launches; of a fetched result what the host does once it is there.
  [[nodiscard]] Block block_of(const ScenarioTask& task) const;
  /// Kernels that a host thread launches: those of an operator or of a model's call.
  [[nodiscard]] LaunchPlan launches_of(const ScenarioTask& task) const;
  /// One block for each launch of the task's plan.
  [[nodiscard]] std::vector<Block> launch_blocks(const ScenarioTask& task, const LaunchPlan& plan) const;
  [[nodiscard]] ExecutionMode mode_of(const ScenarioTask& task) const;
  [[nodiscard]] Block copy_block(const ScenarioTask& task) const;
  /// The host thread waits until the copy of its task is done.
  [[nodiscard]] bool host_waits_for(const ScenarioTask& task) const;

 private:
  void check_gpu(const ScenarioTask& task) const;
  [[nodiscard]] std::vector<Operator> operators(const ScenarioTask& task) const;
  [[nodiscard]] Block copy(const ScenarioTask& task, const CopyWork& work) const;
  [[nodiscard]] Block host_block(const std::string& id, HostWork work) const;

  const Scenario& scenario_;
  const Topology& topology_;
  Recipes recipes_;
};

}  // namespace foretrain
