// `plan:` of a scenario.
#pragma once

#include <optional>

#include "model/scenario/workload_reader.hpp"

namespace foretrain {

/// Gradients are summed in this precision unless the plan says otherwise: fp32 by trainers that keep fp32 gradients or
/// parameters (Megatron-LM accumulates and all-reduces 16-bit training in fp32; PyTorch's autocast and DDP hold fp32
/// gradients), the training precision under ZeRO-3 / FSDP with mixed precision (llm-foundry reduces in bf16).
Precision usual_gradient_precision(Precision training, int zero);

/// Reads the plan (absent: all defaults) for a workload. Train workloads have every key; data is what the other factors
/// leave of the GPUs. Throws ScenarioError for keys without meaning for the workload.
Plan read_plan(const std::optional<Field>& field, const ReadWorkload& workload, const Cluster& cluster);

}  // namespace foretrain
