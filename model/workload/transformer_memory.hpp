// What the layers of a transformer keep for their backward passes, and what they need while they run; of one rank.
#pragma once

#include <cstdint>

#include "model/workload/build.hpp"

namespace foretrain {

/// Fills in what a transformer block keeps and runs again in each way of recomputing, hands on and needs while it runs.
/// Its forward operators must be there.
void set_block_memory(Layer& layer, const TransformerConfig& config, const BuildOptions& options);
void set_embedding_memory(Layer& layer, const TransformerConfig& config, const BuildOptions& options);
/// The output layer with its loss over `rows` × `columns` logits.
void set_head_memory(Layer& layer, std::int64_t rows, std::int64_t columns, const TransformerConfig& config,
                     const BuildOptions& options);

}  // namespace foretrain
