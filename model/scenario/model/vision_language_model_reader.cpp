#include <fmt/format.h>

#include <utility>

#include "model/base/words.hpp"
#include "model/scenario/model/model_reader.hpp"
#include "model/workload/vision_language.hpp"

namespace foretrain {

namespace {

/// A transformer as a part: a preset's name, { preset: NAME, … } or { family: …, … }.
TransformerConfig read_part(const Field& field, bool vision) {
  const ModelConfig model = read_model(field);
  const auto* transformer = std::get_if<TransformerConfig>(&model.shape);
  if (transformer == nullptr || (transformer->family == TransformerFamily::vit) != vision) {
    field.fail(fmt::format("{} is no {}", model.name, vision ? "image encoder" : "language model"),
               vision ? "a model of family vit" : "a model of family llama, gpt or mpt");
  }
  if (transformer->family == TransformerFamily::bert || transformer->family == TransformerFamily::t5) {
    field.fail(fmt::format("{} has no single sequence to insert visual tokens into", name(transformer->family)),
               "a model of family llama, gpt or mpt");
  }
  return *transformer;
}

ProjectorConfig read_mlp(const MappingReader& keys, const VisionLanguageConfig& config) {
  ProjectorConfig mlp;
  mlp.hidden = config.language.hidden;
  keys.fill(mlp);
  const std::int64_t side = config.vision.image_size / config.vision.patch_size;
  if (side % mlp.merge != 0) {
    keys.fail("merge", fmt::format("{} does not divide the {} patches of a side", mlp.merge, side),
              fmt::format("a divisor of {}", side));
  }
  return mlp;
}

ProjectorConfig read_resampler(const MappingReader& keys, const VisionLanguageConfig& config) {
  ProjectorConfig resampler;
  resampler.kind = ProjectorConfig::Kind::resampler;
  resampler.layers = 1;
  resampler.hidden = config.language.hidden;
  resampler.heads = config.language.heads;
  keys.fill(resampler);
  if (resampler.hidden % resampler.heads != 0) {
    keys.fail("heads", fmt::format("width {} is not divisible by {} heads", resampler.hidden, resampler.heads),
              "a divisor of hidden");
  }
  return resampler;
}

ProjectorConfig read_projector(const Field& field, const VisionLanguageConfig& config) {
  const auto kind = field.find("kind");
  if (kind && kind->choice<ProjectorConfig::Kind>() == ProjectorConfig::Kind::resampler) {
    return read_resampler(field.mapping(keys::projector, keys::resampler), config);
  }
  return read_mlp(field.mapping(keys::projector, keys::mlp_projector), config);
}

}  // namespace

VisionLanguageConfig read_vision_language(const Field& field) {
  const MappingReader keys = field.mapping(keys::model, keys::vision_language);
  VisionLanguageConfig config;
  config.vision = read_part(keys["vision"], true);
  config.language = read_part(keys["language"], false);
  config.projector = read_projector(keys["projector"], config);
  if (visual_tokens(config) >= config.language.sequence) {
    keys.fail("language",
              fmt::format("an image of {} visual tokens leaves no room for text in a sequence of {}",
                          visual_tokens(config), config.language.sequence),
              "a longer sequence, a smaller image, or fewer queries");
  }
  return config;
}

}  // namespace foretrain
