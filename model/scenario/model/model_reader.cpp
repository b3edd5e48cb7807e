#include "model/scenario/model/model_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/overrides.hpp"
#include "model/workload/vision_language.hpp"

namespace foretrain {

namespace {

/// Beside the families of transformers those of sequential networks, and models made of several.
enum class Family { gpt, bert, mpt, llama, vit, t5, mlp, cnn, vision_language };
/// The model's keys with presets and config files put in.
YamlNode resolve_model(const Field& field) {
  const auto hf = field.find("hf");
  if (!hf) return resolve_preset(field, Catalogue::model);
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

/// A transformer as a part: a preset's name, { preset: NAME, … } or { family: …, … }.
TransformerConfig read_part(const Field& field, bool vision) {
  const ModelConfig model = read_model(field);
  const auto* transformer = std::get_if<TransformerConfig>(&model.shape);
  if (transformer == nullptr || (transformer->family == TransformerFamily::vit) != vision) {
    field.fail(fmt::format("{} is no {}", model.name, vision ? "image encoder" : "language model"),
               vision ? "a model of family vit" : "a model of family llama, gpt or mpt");
  }
  field.fail_if(transformer->family == TransformerFamily::bert || transformer->family == TransformerFamily::t5,
                "{} has no single sequence to insert visual tokens into", "a model of family llama, gpt or mpt",
                name(transformer->family));
  return *transformer;
}

ProjectorConfig read_projector(const Field& field, const VisionLanguageConfig& config) {
  const MappingReader keys = field.chosen(keys::projector, "mlp");
  const auto kind = keys.choice_or("kind", ProjectorConfig::Kind::mlp);
  const bool resampler = kind == ProjectorConfig::Kind::resampler;
  ProjectorConfig projector;
  projector.kind = kind;
  projector.hidden = config.language.hidden;
  if (resampler) projector.layers = 1;
  if (resampler) projector.heads = config.language.heads;
  keys.fill(projector);
  const std::int64_t side = config.vision.image_size / config.vision.patch_size;
  keys.fail_if(!resampler && side % projector.merge != 0, "merge", "{0} does not divide the {1} patches of a side",
               "a divisor of {1}", projector.merge, side);
  keys.fail_if(resampler && projector.hidden % projector.heads != 0, "heads", "width {} is not divisible by {} heads",
               "a divisor of hidden", projector.hidden, projector.heads);
  return projector;
}

/// The keys of family vision_language: `vision`, `projector` and `language`.
VisionLanguageConfig read_vision_language(const Field& field) {
  const MappingReader keys = field.mapping(keys::model, keys::vision_language);
  VisionLanguageConfig config;
  config.vision = read_part(keys["vision"], true);
  config.language = read_part(keys["language"], false);
  config.projector = read_projector(keys["projector"], config);
  keys.fail_if(visual_tokens(config) >= config.language.sequence, "language",
               "an image of {} visual tokens leaves no room for text in a sequence of {}",
               "a longer sequence, a smaller image, or fewer queries", visual_tokens(config), config.language.sequence);
  return config;
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
  written.fail_if(!stated, "this model has no family",
                  "family: gpt, bert, mpt, llama, vit, t5, mlp, cnn or vision_language; or preset: NAME");
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
