// Transformers: gpt, bert, mpt, llama, vit; dense or with experts; tensor, sequence, context and expert parallel.
#pragma once

#include <optional>
#include <string>

#include "model/workload/build.hpp"

namespace foretrain {

/// Embedding, `layers` blocks, head. The operator list is that of a tuned framework (Megatron-LM, NeMo,
/// llm-foundry): biases, dropout and residual additions fused into one kernel, activation functions into one more; or,
/// with plain kernels, that of framework code (plain_kernels.hpp).
///
/// `tower` says what differs where the transformer is partly frozen or a part of a larger model. The FLOPs per sample
/// are those of the pass over options.micro_batch.
struct TowerOptions {
  PartGradients gradients;  ///< those of the transformer's own parts
  std::optional<Lora> lora;
  bool headless = false;  ///< ends with the last block (image encoders)
};
Model build_transformer(const TransformerConfig& config, const std::string& name, const BuildOptions& options,
                        const TowerOptions& tower = {});

}  // namespace foretrain
