// A stage's chunks of layers as blocks: their passes, and what is synchronised beside or after these.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "model/training/pricing/gradient_sync.hpp"
#include "model/training/pricing/layer_cost.hpp"

namespace foretrain {

/// Sums over a stage's chunks.
struct StageLayers {
  double parameters = 0.0, in_experts = 0.0, largest_tensor = 0.0;
  int layers = 0, tensors = 0;      ///< that hold parameters, and are trained
  LayerPassCost orthogonalisation;  ///< of all matrices, by muon
};

/// A pass of some layers as DualPipe runs it beside another: all its collectives may hide behind the other's kernels.
struct PassWork {
  Seconds kernels, dispatch, collectives;
  std::vector<int> transfers = {};  ///< which these are, one after the other
  double slowdown = 0.0;            ///< of the other's kernels while they run
};
/// A forward and a backward pass that run together.
PassCost paired(const PassWork& forward, const PassWork& backward);

class ChunkBuilder {
 public:
  /// `prices`: LayerPricer::without_recomputation by group of layers; empty where they are not known.
  ChunkBuilder(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
               Recipes recipes, TransferTable& transfers, std::span<const LayerCost> prices = {});

  /// The chunks of a stage, priced at a place and added up in `sums`. `micro_batches`: of the step; none: passes alone,
  /// and what comes and goes inside them.
  std::vector<Step::Chunk> chunks(const GradientSync::Place& place, int stage, std::optional<int> micro_batches,
                                  StageLayers& sums);
  /// Sets the optimizer work of a stage from the rank class's chunks.
  void set_optimizer(double speed, const StageLayers& stage, Step::RankClass& rank_class) const;
  /// Takes the plan's schedule and chunks anew; the rest is as it was.
  void arrange();
  /// Whether two stages hold equally many of the same layers in each chunk.
  [[nodiscard]] bool alike(int a, int b) const { return same_layers(runs_, placement_, a, b); }
  /// Output bytes of a chunk's forward pass.
  [[nodiscard]] Bytes output(int stage, int chunk) const;

  [[nodiscard]] const LayerPricer& pricer() const { return pricer_; }
  [[nodiscard]] const ChunkPlacement& placement() const { return placement_; }

 private:
  using Layers = std::vector<PricedLayer>;

  [[nodiscard]] const std::vector<LayerRun>& runs_of(int stage, int chunk) const;
  [[nodiscard]] const std::shared_ptr<const LayerCalls>& calls_of(int stage, int group, PassKind kind);
  /// The layers of a stage's chunk as they are priced on the rank class, their backward pass whole or a part of it.
  [[nodiscard]] Layers layers_of(const GradientSync::Place& place, int stage, int chunk, PassKind kind);
  [[nodiscard]] LayerCost cost_of(const Layers& layers) const;
  [[nodiscard]] Step::Chunk passes_of(const GradientSync::Place& place, int stage, int number, const Layers& layers,
                                      StageLayers& sums);
  void pair(const GradientSync::Place& place, int stage, std::vector<Step::Chunk>& chunks) const;
  [[nodiscard]] PassWork work_of(const GradientSync::Place& place, int stage, int number, bool backward) const;
  /// Records its collectives inside layers.
  static void note_inside(const Layers& layers, Step::Chunk& chunk);
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
  std::vector<PerPass<Layer>> parts_;        ///< by group of layers: those whose backward pass is a part of it
  std::vector<PerPass<LayerCost>> prices_;   ///< by group of layers: with their backward pass whole or a part of it
  std::map<std::tuple<int, int, PassKind>, std::shared_ptr<const LayerCalls>> calls_;  ///< by stage, group of layers
};

}  // namespace foretrain
