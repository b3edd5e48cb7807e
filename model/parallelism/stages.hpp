// Dividing a model's layers over pipeline stages.
#pragma once

#include <vector>

#include "model/cost/calibration.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/parallelism/plan.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// `count` consecutive layers of Model::layers[group].
struct LayerRun {
  int group = 0;
  int count = 1;
  bool operator==(const LayerRun&) const = default;
};

/// chunks[k] are the layers of the k-th model chunk in model order (whose it is: ChunkPlacement). Splittable layers are
/// divided evenly; where that does not work out the middle chunks take one more, so that the first (embedding) and last
/// (loss) stay lighter. Networks whose layers differ are cut so that the costliest chunk is as cheap as possible, by
/// forward FLOPs. `ends_count`: embedding and loss are a layer each (of mean cost) when the layers are divided; their
/// chunks then hold one layer less, and may hold none. Throws UsageError when there are fewer layers than chunks.
std::vector<std::vector<LayerRun>> split_layers(const Model& model, int stages, int interleave,
                                                bool ends_count = false);

/// The same for a plan, whose stages may hold stated numbers of splittable layers (Plan::stage_layers).
std::vector<std::vector<LayerRun>> split_layers(const Model& model, const Plan& plan);

/// Whether two stages hold equally many of the same layers in each chunk.
bool same_layers(const std::vector<std::vector<LayerRun>>& chunks, const ChunkPlacement& placement, int a, int b);

/// Times of a stage's devices for each splittable layer, and for the layers before and behind all of them.
struct StageTimes {
  std::vector<Seconds> layers;
  Seconds before, behind;
};

/// Layers of each stage, so that the slowest stage is as fast as can be; at least one each.
std::vector<int> layers_by_speed(const std::vector<StageTimes>& stages);

/// The same for the kinds of GPUs that the plan's stages run on: kernels of a layer's forward and backward pass.
std::vector<int> layers_by_speed(const Model& model, const Plan& plan, const Cluster& cluster,
                                 const Calibration& calibration);

}  // namespace foretrain
