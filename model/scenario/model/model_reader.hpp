// `model:` of a scenario, and the files in scenarios/models, Hugging Face's among them. Out: a ModelConfig
// (model/workload), whose shapes are possible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/units.hpp"
#include "model/hardware/gpu.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "model/workload/model_config.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// A catalogue name or path, `{ preset: NAME, … }` with some keys replaced, `{ hf: config.json, … }` likewise, or
/// `{ family: …, … }`. Defaults of the families are applied (transformer_model_reader.cpp).
ModelConfig read_model(const Field& field);

/// Global batch of a model's published training, and the entry of `sources` that states it.
struct PublishedBatch {
  TrainingLength length;
  std::string written;  ///< as the file has it: "4 M tokens"
  std::string source;   ///< empty: not stated
};
/// Published batch of a model that read_model() accepts; nothing where it states none.
std::optional<PublishedBatch> read_published_batch(const Field& field);

/// The keys of families gpt, bert, mpt, llama and vit.
TransformerConfig read_transformer(const Field& field, TransformerFamily family);

/// `7` or `[1, 7]` (height, width).
std::pair<std::int64_t, std::int64_t> read_pair(const Field& field);

/// A Hugging Face config.json as a mapping with our keys; only shapes are read. Throws
/// ScenarioError for a model type without a family here.
YamlNode hugging_face_model(const YamlNode& config);

/// `kind: attention` of an operator.
Operator read_attention(const MappingReader& keys);
/// Lengths of sequences that are packed into one: a list, or quantiles of a distribution.
std::vector<std::int64_t> read_sequence_lengths(const Field& field);
/// Complains at the key `attention` of an operator when its kind, asked for by name, does not run
/// on the GPU; does nothing for other operators.
void check_attention(const Operator& op, const Gpu& gpu, const Field& field);
/// The same for the attention of every transformer in a model that trains or is called; `field` is the mapping that
/// says `attention` where it is stated. A network of layers has none to state.
void check_attention(const ModelConfig& model, AttentionKind kind, Precision precision, const Gpu& gpu,
                     const Field& field);

}  // namespace foretrain
