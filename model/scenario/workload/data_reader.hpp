// What a training says about its samples and about what is trained: `data`, `freeze` and `lora` of workload.train.
#pragma once

#include "model/scenario/yaml_reader.hpp"
#include "model/workload/batching.hpp"
#include "model/workload/model_config.hpp"
#include "model/workload/training_parts.hpp"

namespace foretrain {

/// `data: { images: …, text: …, batching: … }`. A length is a number, or { distribution: uniform, from, to },
/// { distribution: lognormal, mean, spread }, { distribution: histogram, values, weights }. Batching is maximum,
/// padding, { kind: bucketing, buckets } or { kind: packing, length }. Throws ScenarioError for a model without a
/// sequence, and for samples that the model cannot take.
DataShape read_data(const Field& field, const ModelConfig& model);

/// `freeze: [vision, projector, language]`, also the language model's embedding, blocks and head.
void read_freeze(const Field& field, const ModelConfig& model, TrainedParts& parts);

/// `lora: { rank: 16, targets: [attention, ffn] }`.
void read_lora(const Field& field, const ModelConfig& model, TrainedParts& parts);

/// Throws ScenarioError at `train` where everything is frozen.
void check_something_is_trained(const Field& train, const ModelConfig& model, const TrainedParts& parts);

}  // namespace foretrain
