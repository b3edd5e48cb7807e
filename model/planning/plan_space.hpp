// The plans that are searched: which values each dimension takes, and which combinations are possible. Limits are those
// of practice: tensor parallelism stays within a node, a pipeline's stages hold equally many layers per chunk where
// they are interleaved, experts are divided evenly. What checks.hpp refuses is no plan.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/hardware/topology.hpp"
#include "model/planning/plan_point.hpp"
#include "model/scenario/load/load.hpp"

namespace foretrain {

class PlanSpace {
 public:
  /// `document`: a training scenario; values of chosen dimensions in it are ignored. Throws ScenarioError for a
  /// document that is none, and for work that is not searched (other jobs, several kinds of nodes, stages balanced by
  /// speed).
  PlanSpace(YamlNode document, std::string name, const PlanDimensions& chosen);

  /// Points that differ in tensor to order, and in machines that are servers alone: what a search takes up together.
  [[nodiscard]] const std::vector<PlanPoint>& layouts() const { return layouts_; }
  /// The points below one, in the order in which dimensions are decided: micro-batch, recomputation and sequence
  /// parallelism, which say what layers take. The schedule and how many chunks a stage holds; what ZeRO divides and
  /// what lies on the host; how gradients are synchronised.
  [[nodiscard]] std::vector<PlanPoint> passes(const PlanPoint& layout) const;
  [[nodiscard]] std::vector<PlanPoint> pipelinings(PlanPoint point) const;
  [[nodiscard]] std::vector<PlanPoint> shardings(PlanPoint point) const;
  [[nodiscard]] std::vector<PlanPoint> synchronisations(const PlanPoint& point) const;
  /// Plans below one of the passes().
  [[nodiscard]] std::int64_t plans_of(const PlanPoint& point) const;
  /// One of the passes() with the first of what is not decided yet, so that it can be read; as it is where no pipeline
  /// is possible.
  [[nodiscard]] PlanPoint completed(const PlanPoint& point) const;

  /// "KEY=VALUE" of what is chosen, as `--set` takes them.
  [[nodiscard]] std::vector<std::string> overrides(const PlanPoint& point) const;
  /// The scenario with the point's values, read as any other. Throws ScenarioError where they are impossible.
  [[nodiscard]] Scenario read(const PlanPoint& point) const;
  [[nodiscard]] const PlanDimensions& chosen() const { return chosen_; }
  [[nodiscard]] const YamlNode& document() const { return document_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// With the first layout's plan: its cluster and workload are those of all.
  [[nodiscard]] const Scenario& example() const { return example_; }
  [[nodiscard]] const Topology& topology() const { return *topology_; }

 private:
  [[nodiscard]] std::vector<int> factors(PlanDimension dimension, const std::vector<int>& candidates) const;
  [[nodiscard]] std::vector<int> tensor_factors(const Cluster& cluster) const;
  void allow_what_is_stated();
  void refuse_what_is_not_searched(const Cluster& cluster) const;
  void add_layouts(const Cluster& cluster);
  void add_layouts(const Cluster& cluster, std::int64_t gpus, PlanPoint point);
  [[nodiscard]] std::vector<PlanPoint> server_choices(const Cluster& cluster) const;
  static std::string sync_without_servers(const YamlNode& document);
  void ask_trainer(const Cluster& cluster);
  [[nodiscard]] bool runs(int zero, const PlanPoint& point) const;
  [[nodiscard]] std::vector<PlanPoint> methods(const PlanPoint& point) const;
  [[nodiscard]] std::int64_t batch_of_replica(const PlanPoint& point) const { return global_batch_ / point.data; }

  YamlNode document_;
  std::string name_;
  PlanDimensions chosen_;
  Scenario example_;
  std::shared_ptr<const Topology> topology_;
  std::vector<PlanPoint> layouts_;
  std::vector<PlanPoint> with_servers_;     ///< on machines that train, and dedicated ones; nothing else is decided
  std::optional<SyncAlgorithm> algorithm_;  ///< if not searched
  std::string without_servers_;  ///< the override that leaves out what the document says of servers; empty: nothing
  std::int64_t global_batch_ = 0;
  int layers_ = 1;                                               ///< that a pipeline divides
  std::array<bool, 4> in_pipelines_ = {true, true, true, true};  ///< levels of ZeRO that the trainer runs there
  bool scatters_ = false;                                        ///< ZeRO-2 scatters every micro-batch's gradients
  bool transformer_ = false, tensor_overlap_ = false;
};

}  // namespace foretrain
