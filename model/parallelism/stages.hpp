// Dividing a model's layers over pipeline stages, and the order in which a stage works on its micro-batches.
#pragma once

#include <vector>

#include "model/parallelism/plan.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// `count` consecutive layers of Model::layers[group].
struct LayerRun {
  int group = 0;
  int count = 1;
};

/// chunks[k] are the layers of the k-th model chunk in model order; chunk k belongs to stage k % stages (interleaved
/// pipelines hold several, arXiv 2104.04473, section 2.2). Splittable layers are divided evenly; where that does not
/// work out the middle chunks take one more, so that the first (embedding) and last (loss) stay lighter. Networks whose
/// layers differ are cut so that the costliest chunk is as cheap as possible, by forward FLOPs. Throws UsageError when
/// there are fewer splittable layers than chunks.
std::vector<std::vector<LayerRun>> split_layers(const Model& model, int stages, int interleave);

/// One forward or backward pass of one micro-batch through one of the stage's chunks.
struct PipelinePass {
  bool backward = false;
  int chunk = 0;  ///< 0 … interleave-1, this stage's
  int micro_batch = 0;
};

/// The order of work of one stage.
std::vector<PipelinePass> pipeline_order(PipelineSchedule schedule, int stages, int stage, int interleave,
                                         int micro_batches);

}  // namespace foretrain
