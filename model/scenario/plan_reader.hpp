// `plan:` of a scenario.
#pragma once

#include <optional>

#include "model/scenario/workload_reader.hpp"

namespace foretrain {

/// Gradients are summed in this precision unless the plan says otherwise: fp16 when training in fp16 (Megatron-LM and
/// apex keep gradients in the parameters' type; networks of layers and plain kernels cast fp32 weights: fp32), fp32
/// when training in bf16 (Megatron-LM accumulates and all-reduces in fp32), but bf16 under ZeRO-3 / FSDP with mixed
/// precision (llm-foundry reduces in bf16); fp32 for fp32 and tf32.
Precision usual_gradient_precision(const TrainWorkload& train, int zero);

/// Reads the plan (absent: all defaults) for a workload. Train workloads have every key; data is what the other factors
/// leave of the GPUs. `taken` are nodes that other jobs have: the plan is placed on those that are left. Throws
/// ScenarioError for keys without meaning for the workload.
Plan read_plan(const std::optional<Field>& field, const ReadWorkload& workload, const Cluster& cluster,
               const std::vector<int>& taken = {});

/// The level that plan.zero states, by itself or as its `stage`.
int zero_level(const Field& field);

}  // namespace foretrain
