// `plan:` of a scenario. Out: a Plan without anything left open.
#pragma once

#include <string>
#include <vector>

#include "model/scenario/plan/trainer_reader.hpp"
#include "model/scenario/workload/workload_reader.hpp"

namespace foretrain {

/// A training's plan as stated; keys that are not stated keep the values of a new Plan.
Plan read_stated_plan(const Field& field);

/// The rest of it, once its framework's settings are known: data is what the other factors leave of the GPUs. `taken`
/// are nodes that other jobs have: the plan is placed on those that are left. Throws ScenarioError for keys without
/// meaning for the training.
void complete_plan(const Field& field, const Framework& framework, const TrainWorkload& train, const Cluster& cluster,
                   const std::vector<int>& taken, Plan& plan);

/// The plan of a workload that trains nothing. Throws ScenarioError for keys without meaning for it.
Plan read_other_plan(const Field& field, const ReadWorkload& workload);

/// The names of the rules for `plan.sync.bucket` in scenarios/buckets.yaml.
std::vector<std::string> bucket_rule_names();

/// Nodes of a cluster as a file lists them, each once.
class NodeList {
 public:
  /// `taken` are others'.
  explicit NodeList(const Cluster& cluster, const std::vector<int>& taken = {});
  /// `0..7`, or one number. Throws ScenarioError for nodes that are there already or are taken.
  void add(const Field& field);
  [[nodiscard]] const std::vector<int>& nodes() const { return nodes_; }

 private:
  enum class By : char { nobody, own, others };
  std::vector<By> taken_by_;
  std::vector<int> nodes_;
};

}  // namespace foretrain
