// Dividing a model's layers over pipeline stages.
#pragma once

#include <vector>

#include "model/workload/model.hpp"

namespace foretrain {

/// `count` consecutive layers of Model::layers[group].
struct LayerRun {
  int group = 0;
  int count = 1;
};

/// chunks[k] are the layers of the k-th model chunk in model order (whose it is: ChunkPlacement). Splittable layers are
/// divided evenly; where that does not work out the middle chunks take one more, so that the first (embedding) and last
/// (loss) stay lighter. Networks whose layers differ are cut so that the costliest chunk is as cheap as possible, by
/// forward FLOPs. `ends_count`: embedding and loss are a layer each (of mean cost) when the layers are divided; their
/// chunks then hold one layer less, and may hold none. Throws UsageError when there are fewer layers than chunks.
std::vector<std::vector<LayerRun>> split_layers(const Model& model, int stages, int interleave,
                                                bool ends_count = false);

}  // namespace foretrain
