// Times of layers, and the step that they make. In: a scenario, its model, the topology. Out: a Step with all its
// blocks priced.
//
// A layer is priced once for each rank class (layer_cost.hpp), its collectives beside or between its kernels. Layers
// are added up to a chunk's passes (chunk_builder.hpp), and what is synchronised beside or behind them is noted
// (gradient_sync.hpp). A search has the passes of many plans alone (pass_steps.hpp). Invariant: nothing here knows how
// many micro-batches there are, nor when anything begins.
#pragma once

#include "model/training/step/step.hpp"

namespace foretrain {

/// Costs every block of a training scenario. Throws UsageError for plans that cannot be laid out. Recipes are kept of
/// passes, their synchronisation and the optimizer of plans that are data parallel alone; offloading and ZeRO have
/// none.
Step build_step(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
                Recipes recipes = Recipes::none, InsideLayers inside = InsideLayers::merged,
                Symmetry symmetry = Symmetry::used);

}  // namespace foretrain
