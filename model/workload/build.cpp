#include "model/workload/build.hpp"

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

}  // namespace

Model build_model(const ModelConfig& config, const BuildOptions& options) {
  Model model = build(config, options);
  for (LayerGroup& group : model.layers) {
    for (Operator& op : group.layer.backward) op.backward = true;
  }
  return model;
}

}  // namespace foretrain
