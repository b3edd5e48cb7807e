// Transformers: gpt, bert, mpt, llama, vit; dense or with experts; tensor, sequence, context and expert parallel.
#pragma once

#include <string>

#include "model/workload/build.hpp"

namespace foretrain {

/// Embedding, `layers` blocks, head. The operator list is that of a well-tuned trainer (Megatron-LM, NeMo,
/// llm-foundry): biases, dropout and residual additions fused into one kernel, activation functions into one more.
Model build_transformer(const TransformerConfig& config, const std::string& name, const BuildOptions& options);

}  // namespace foretrain
