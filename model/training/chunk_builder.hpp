// A stage's chunks of layers as blocks: their passes, and what is synchronised beside or after these.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "model/training/gradient_sync.hpp"
#include "model/training/layer_cost.hpp"

namespace foretrain {

/// What a stage's chunks add up to.
struct StageLayers {
  double parameters = 0.0, in_experts = 0.0, largest_tensor = 0.0;
  int layers = 0, tensors = 0;  ///< that hold parameters, and are trained
};

class ChunkBuilder {
 public:
  ChunkBuilder(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
               Recipes recipes, TransferTable& transfers);

  /// All chunks of a lane, which are added up in `stage`. `micro_batches`: of the step.
  std::vector<Step::Chunk> chunks(const GradientSync::Place& place, int micro_batches, StageLayers& stage);
  /// What a chunk's forward pass hands to the next chunk.
  [[nodiscard]] Bytes output(int stage, int chunk) const;

  [[nodiscard]] const LayerPricer& pricer() const { return pricer_; }
  [[nodiscard]] GradientSync& sync() { return sync_; }
  [[nodiscard]] const ChunkPlacement& placement() const { return placement_; }

 private:
  using Part = PipelinePass::Part;
  using Layers = std::vector<PricedLayer>;
  /// What a layer costs, its backward pass whole and in parts.
  struct Price {
    LayerCost whole, inputs, weights;
  };

  [[nodiscard]] const std::vector<LayerRun>& runs_of(int stage, int chunk) const;
  [[nodiscard]] const LayerCalls& calls_of(int stage, int group, Part part);
  [[nodiscard]] Layers layers_of(const GradientSync::Place& place, int chunk, Part part = Part::whole);
  [[nodiscard]] LayerCost cost_of(const Layers& layers) const;
  [[nodiscard]] Step::Chunk chunk(const GradientSync::Place& place, int number, Part last, StageLayers& stage);
  void add_parts(const GradientSync::Place& place, int number, Step::Chunk& chunk);
  void add_pair(const GradientSync::Place& place, int number, Step::Chunk& chunk);
  [[nodiscard]] PassWork work_of(const GradientSync::Place& place, int number, bool backward) const;
  void keep_recipes(const Layers& layers, Step::Chunk& chunk) const;

  const Scenario& scenario_;
  const Plan& plan_;
  const TrainWorkload& train_;
  const Model& model_;
  const Topology& topology_;
  TransferTable& transfers_;
  LayerPricer pricer_;
  GradientSync sync_;
  ChunkPlacement placement_;
  std::vector<std::vector<LayerRun>> runs_;  ///< by chunk of the model
  std::vector<Price> prices_;                ///< by group of layers
  std::vector<Layer> inputs_layers_;         ///< the same, as their backward pass makes gradients of inputs alone
  /// By stage and group of layers; of the backward pass whole, and without gradients of weights.
  std::map<std::pair<int, int>, LayerCalls> calls_, inputs_calls_;
};

}  // namespace foretrain
