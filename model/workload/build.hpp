// From what a scenario says about a model to layers with shapes.
#pragma once

#include <optional>

#include "model/hardware/precision.hpp"
#include "model/workload/batching.hpp"
#include "model/workload/model.hpp"
#include "model/workload/model_config.hpp"
#include "model/workload/operator.hpp"
#include "model/workload/quantisation.hpp"
#include "model/workload/trainer_code.hpp"
#include "model/workload/training_parts.hpp"

namespace foretrain {

/// Layout of the model on the ranks of one model replica; sizes in build_model's result are those of one rank.
struct BuildOptions {
  std::int64_t micro_batch = 1;
  Precision precision = Precision::bf16;
  QuantisationRecipe recipe = {};
  double passes_per_cast = 1.0;  ///< micro-batches that a quantised copy of the weights serves
  AttentionKind attention = AttentionKind::flash;
  int tensor = 1;
  int context = 1;
  ContextMethod context_method = ContextMethod::ring;
  int expert = 1;
  bool folded_experts = false;  ///< as in Plan
  bool sequence_parallel = false;
  TrainerCode code = {};
  bool casts_weights = false;  ///< weights are whole, and cast to a shorter training precision in every pass
  bool compiled = false;       ///< a compiler drops kept tensors that no backward kernel reads
  bool in_graph = false;       ///< the host reads nothing while a step runs
  std::optional<PassTokens> pass =
      std::nullopt;  ///< tokens of a transformer's pass; else micro_batch sequences of its own length
  TrainedParts parts = {};
  RecomputedLayers recompute_layers = {};
  std::optional<DataShape> data = std::nullopt;  ///< samples differ; else each is as long as the model's sequence
};

/// Layers of the model, costs not yet attached. Where samples differ, times are those of a mean pass and memory is that
/// of the largest. Throws ScenarioError for impossible shapes, UsageError for a layout that the family does not have
/// (tensor parallelism of a convolutional network).
Model build_model(const ModelConfig& config, const BuildOptions& options);

}  // namespace foretrain
