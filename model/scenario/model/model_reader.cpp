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
  const auto hf = field.find("hf");
  if (!hf) return resolve_preset(field, CatalogueSection::model);
  if (field.find("preset")) hf->fail("both hf and preset", "one of them");
  YamlNode changes = field.node();
  changes.erase("hf");
  return merged(hugging_face_model(cached_yaml_file(referenced_file(*hf).string())), changes);
}

std::optional<PublishedBatch> published_batch(const Field& model) {
  const auto field = model.find("published_batch");
  if (!field) return std::nullopt;
  PublishedBatch batch{field->parse(parse_training_length), field->text(), {}};
  for (const char* source : {"sources.published_batch.text", "sources.default.text"}) {
    const YamlNode* text = model.node().at(source);
    if (text != nullptr && batch.source.empty()) batch.source = trim(text->scalar);
  }
  return batch;
}

}  // namespace

std::optional<PublishedBatch> read_published_batch(const Field& written) {
  const YamlNode document = resolve_model(written);
  return published_batch(Field(document, written.path()));
}

ModelConfig read_model(const Field& written) {
  const YamlNode document = resolve_model(written);
  const Field field(document, written.path());
  const auto stated = field.find("family");
  if (!stated) {
    written.fail("this model has no family",
                 "family: gpt, bert, mpt, llama, vit, t5, mlp, cnn or vision_language; or preset: NAME");
  }
  const auto family = stated->choice<Family>();
  static_cast<void>(published_batch(field));  // complains of what is none
  const YamlNode* name = document.at("name");
  ModelConfig model;
  model.name = name != nullptr && !name->scalar.empty() ? name->scalar : stated->text();
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
