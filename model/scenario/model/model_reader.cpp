#include "model/scenario/model/model_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/overrides.hpp"

namespace foretrain {

namespace {

/// Beside the families of transformers those of sequential networks, and models made of several.
enum class Family { gpt, bert, mpt, llama, vit, t5, mlp, cnn, vision_language };
/// The model's keys with presets and config files put in.
YamlNode resolve_model(const Field& field) {
  const YamlEntry* hf = field.is_mapping() ? field.node().find("hf") : nullptr;
  if (hf == nullptr) return resolve_preset(field, CatalogueSection::model);
  const Field path(hf->value, join_path(field.path(), "hf"));
  if (field.node().find("preset") != nullptr) path.fail("both hf and preset", "one of them");
  YamlNode changes = field.node();
  std::erase_if(changes.entries, [](const YamlEntry& entry) { return entry.key == "hf"; });
  return merged(hugging_face_model(cached_yaml_file(referenced_file(path).string())), changes);
}

std::string scalar_of(const YamlNode& node, std::string_view key) {
  const YamlEntry* entry = node.find(key);
  return entry != nullptr ? entry->value.scalar : std::string();
}

std::optional<PublishedBatch> published_batch(const YamlNode& document, const std::string& path) {
  const YamlEntry* entry = document.find("published_batch");
  if (entry == nullptr) return std::nullopt;
  const Field field(entry->value, join_path(path, "published_batch"));
  PublishedBatch batch{
      field.parse([](const std::string& text) { return parse_training_length(text); }), field.text(), {}};
  for (const char* source : {"sources.published_batch.text", "sources.default.text"}) {
    const YamlNode* text = document.at(source);
    if (text != nullptr && batch.source.empty()) batch.source = trim(text->scalar);
  }
  return batch;
}

}  // namespace

std::optional<PublishedBatch> read_published_batch(const Field& written) {
  return published_batch(resolve_model(written), written.path());
}

ModelConfig read_model(const Field& written) {
  const YamlNode document = resolve_model(written);
  const Field field(document, written.path());
  const YamlEntry* family_entry = document.find("family");
  if (!document.is_mapping() || family_entry == nullptr) {
    written.fail("this model has no family",
                 "family: gpt, bert, mpt, llama, vit, t5, mlp, cnn or vision_language; or preset: NAME");
  }
  const Family family = Field(family_entry->value, join_path(field.path(), "family")).choice<Family>();
  static_cast<void>(published_batch(document, field.path()));  // complains of what is none
  ModelConfig model;
  model.name = scalar_of(document, "name");
  if (model.name.empty()) model.name = family_entry->value.scalar;
  if (family == Family::cnn || family == Family::mlp) {
    model.shape = read_network_model(field);
  } else if (family == Family::vision_language) {
    model.shape = read_vision_language(field);
  } else {
    // Both enumerations list the transformers first and in the same order.
    model.shape = read_transformer(field, static_cast<TransformerFamily>(family));
  }
  return model;
}

}  // namespace foretrain
