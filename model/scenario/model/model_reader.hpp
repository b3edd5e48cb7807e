// `model:` of a scenario, and the files in scenarios/models, Hugging Face's among them. Out: a ModelConfig
// (model/workload), whose shapes are possible.
#pragma once

#include <optional>
#include <string>

#include "model/base/units.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "model/workload/model_config.hpp"

namespace foretrain {

/// A catalogue name or path, `{ preset: NAME, … }` with some keys replaced, `{ hf: config.json, … }` likewise, or
/// `{ family: …, … }`. Defaults of the families are applied (transformer_model_reader.cpp lists them). Throws
/// ScenarioError for unknown or missing keys and impossible shapes.
ModelConfig read_model(const Field& field);

/// What a step of a model's published training took: `batch`, and the entry of `sources` that says so.
struct PublishedBatch {
  TrainingLength length;
  std::string written;  ///< as the file has it: "4 M tokens"
  std::string source;   ///< empty: not stated
};
/// Of a model written in one of the ways of read_model(); nothing where it states none.
std::optional<PublishedBatch> read_published_batch(const Field& field);

/// The keys of families gpt, bert, mpt, llama and vit.
TransformerConfig read_transformer(const Field& field, TransformerFamily family);

/// The keys of family vision_language: `vision`, `projector` and `language`.
VisionLanguageConfig read_vision_language(const Field& field);

/// The keys of families cnn and mlp: `input` and `layers`.
NetworkConfig read_network_model(const Field& field);

/// A Hugging Face config.json as a mapping with our keys; what it says beyond shapes is left out. Throws ScenarioError
/// for a model type without a family here.
YamlNode read_hugging_face_config(const std::string& file);
/// The same of what such a file holds.
YamlNode hugging_face_model(const YamlNode& config);

}  // namespace foretrain
