// The host thread of a training step: a step's graph holds what its kernels take, or the host where that is longer; a
// replay wants to know both.
#pragma once

#include "model/scenario/scenario.hpp"
#include "validate/replay/graph.hpp"

namespace foretrain {

/// Puts a dispatch before each task that launches kernels, as long as the model's: that of the block's launches, or the
/// block itself where it outlasts its kernels; and at the end what the host does between steps, which the prediction
/// then includes. Nothing for a step that is launched as one CUDA graph.
void add_host_thread(const Scenario& scenario, replay::Graph& graph);

}  // namespace foretrain
