#include "model/workload/build.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "model/base/error.hpp"
#include "model/workload/network.hpp"
#include "model/workload/vision_language.hpp"

namespace foretrain {

namespace {

Model build(const ModelConfig& config, const BuildOptions& options) {
  if (const auto* transformer = std::get_if<TransformerConfig>(&config.shape)) {
    return build_language(*transformer, config.name, options);
  }
  if (const auto* whole = std::get_if<VisionLanguageConfig>(&config.shape)) {
    return build_vision_language(*whole, config.name, options);
  }
  if (options.tensor > 1 || options.context > 1 || options.expert > 1) {
    throw ImpossiblePlan("tensor, context and expert parallelism are defined for transformers only, and " +
                             config.name + " is a network of layers; use data or pipeline parallelism",
                         "plan");
  }
  return build_network(std::get<NetworkConfig>(config.shape), config.name, options.micro_batch, options.precision,
                       options.code);
}

/// Blocks that keep their activations although others alike are recomputed.
void divide(std::vector<LayerGroup>& groups, const RecomputedLayers& recomputed) {
  int at = 0;
  for (LayerGroup& group : std::exchange(groups, {})) {
    for (int left = group.repeat; left > 0; left -= groups.back().repeat) {
      const bool again = at < recomputed.layers, whole = !group.layer.splittable;
      groups.push_back({group.layer, whole ? left : std::min(left, (again ? recomputed.layers : recomputed.of) - at)});
      if (whole) continue;
      groups.back().layer.recomputable = again;
      at = (at + groups.back().repeat) % recomputed.of;
    }
  }
}

}  // namespace

Model build_model(const ModelConfig& config, const BuildOptions& options) {
  Model model = build(config, options);
  if (options.recompute_layers.of > 0) divide(model.layers, options.recompute_layers);
  for (LayerGroup& group : model.layers) {
    for (Operator& op : group.layer.backward) op.backward = true;
  }
  return model;
}

}  // namespace foretrain
