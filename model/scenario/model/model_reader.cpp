#include "model/scenario/model/model_reader.hpp"

#include "model/base/text.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/overrides.hpp"
#include "model/workload/vision_language.hpp"

namespace foretrain {

namespace {

/// Beside the families of transformers those of sequential networks, and models made of several.
enum class Family { gpt, bert, mpt, llama, vit, t5, mlp, cnn, vision_language };
/// The model's keys with presets and config files put in.
Field resolve_model(const Field& field) {
  const auto hf = field.find("hf");
  if (!hf) return resolve_preset(field, Catalogue::model);
  if (field.find("preset")) hf->fail("both hf and preset", "one of them");
  YamlNode changes = field.node();
  changes.erase("hf");
  return field.replaced(merged(hugging_face_model(cached_yaml_file(referenced_file(*hf).string())), changes));
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
  field.fail_if(transformer == nullptr || (transformer->family == TransformerFamily::vit) != vision, "{0} is no {1}",
                "a model of family {2}", model.name, vision ? "image encoder" : "language model",
                vision ? "vit" : "llama, gpt or mpt");
  field.fail_if(transformer->family == TransformerFamily::bert || transformer->family == TransformerFamily::t5,
                "{} has no single sequence to insert visual tokens into", "a model of family llama, gpt or mpt",
                name(transformer->family));
  return *transformer;
}

ProjectorConfig read_projector(const Field& field, const VisionLanguageConfig& config) {
  const MappingReader keys = field.mapping("mlp");
  const auto kind = keys.value_or("kind", ProjectorConfig::Kind::mlp);
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
  const MappingReader keys = field.mapping(keys::model);
  VisionLanguageConfig config;
  config.vision = read_part(keys["vision"], true);
  config.language = read_part(keys["language"], false);
  config.projector = read_projector(keys["projector"], config);
  keys.fail_if(visual_tokens(config) >= config.language.sequence, "language",
               "an image of {} visual tokens leaves no room for text in a sequence of {}",
               "a longer sequence, a smaller image, or fewer queries", visual_tokens(config), config.language.sequence);
  return config;
}

std::vector<NetworkLayer> read_layers(const Field& list);

NetworkLayer::Kind kind_of(const std::string& word, const Field& field) {
  if (const auto kind = value_of<NetworkLayer::Kind>(word)) return *kind;
  const std::vector<std::string> words(names_of<NetworkLayer::Kind>.begin(), names_of<NetworkLayer::Kind>.end());
  field.fail(fmt::format("unknown layer \"{}\"", word),
             did_you_mean(nearest_word(word, words), or_list(words, words.size())));
}

/// Reads the parameters behind a layer's word.
void read_parameters(const Field& field, NetworkLayer& layer, std::string_view word) {
  using enum NetworkLayer::Kind;
  if (layer.kind == dropout) {
    if (field.as<double>() > 1.0) field.fail("above 1", "the share of values that is dropped, from 0 to 1");
  } else if (layer.kind == branches) {
    for (const Field& branch : field.list()) layer.bodies.push_back(read_layers(branch));
    if (layer.bodies.empty()) field.fail("no branches", "[ [ … ], [ … ] ]");
  } else {
    const MappingReader keys = field.mapping(keys::table_of(keys::key_of(keys::layer, word)));
    keys.fill(layer);
    if (layer.kind == residual || layer.kind == repeat) layer.bodies.push_back(read_layers(keys["body"]));
    if (layer.kind == residual) {
      const auto shortcut = keys.find("shortcut");
      layer.bodies.push_back(shortcut ? read_layers(*shortcut) : std::vector<NetworkLayer>{});
    }
    const bool pools = layer.kind == max_pool || layer.kind == average_pool;
    if (pools || layer.kind == convolution) {
      std::tie(layer.kernel_h, layer.kernel_w) = read_pair(keys["kernel"]);
      if (const auto pad = keys.find("pad")) std::tie(layer.pad_h, layer.pad_w) = read_pair(*pad);
    }
    // Windows of a pooling layer do not overlap unless a stride says so.
    if (pools && !keys.has("stride")) layer.stride = layer.kernel_h;
  }
}

NetworkLayer read_layer(const Field& field) {
  NetworkLayer layer;
  layer.where = field.where();
  const bool alone = field.is_scalar();
  field.fail_if(!alone && (!field.is_mapping() || field.node().entries.size() != 1), "this is not one layer",
                "relu, or { conv: { out: 64, kernel: 3 } }");
  const std::string& word = alone ? field.text() : field.node().entries.front().key;
  layer.kind = kind_of(word, field);
  const bool has_parameters = std::ranges::find(keys::layer.keys, word, &keys::Key::name) != keys::layer.keys.end();
  field.fail_if(alone && has_parameters, "{0} without parameters", "{{ {0}: {{ … }} }}", word);
  field.fail_if(!alone && !has_parameters, "{0} has no parameters", "{0}", word);
  if (!alone) read_parameters(field.below(field.node().entries.front()), layer, word);
  return layer;
}

std::vector<NetworkLayer> read_layers(const Field& list) {
  std::vector<NetworkLayer> layers;
  for (const Field& field : list.list()) layers.push_back(read_layer(field));
  return layers;
}

/// The keys of families cnn and mlp.
NetworkConfig read_network_model(const Field& field) {
  const MappingReader model = field.mapping(keys::model);
  NetworkConfig config;
  const std::vector<Field> input = model["input"].list();
  model.fail_if(input.size() != 1 && input.size() != 3, "input", "{} numbers",
                "[channels, height, width] or [features]", input.size());
  config.channels = input[0].as<std::int64_t>({.range = {1, 100'000'000}});
  if (input.size() == 3) {
    config.height = input[1].as<std::int64_t>({.range = {1, 100'000}});
    config.width = input[2].as<std::int64_t>({.range = {1, 100'000}});
  }
  config.layers = read_layers(model["layers"]);
  if (config.layers.empty()) model.fail("layers", "no layers", "at least one layer, such as { linear: { out: 10 } }");
  return config;
}

}  // namespace

std::optional<PublishedBatch> read_published_batch(const Field& written) {
  return published_batch(resolve_model(written));
}

ModelConfig read_model(const Field& written) {
  const Field field = resolve_model(written);
  const auto stated = field.find("family");
  written.fail_if(!stated, "this model has no family",
                  "family: gpt, bert, mpt, llama, vit, t5, mlp, cnn or vision_language; or preset: NAME");
  const auto family = stated->as<Family>();
  static_cast<void>(published_batch(field));  // complains of what is none
  const YamlNode* name = field.node().at("name");
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

std::pair<std::int64_t, std::int64_t> read_pair(const Field& field) {
  if (field.is_scalar()) return {field.as<std::int64_t>(), field.as<std::int64_t>()};
  const std::vector<Field> sides = field.list();
  if (sides.size() != 2) field.fail(fmt::format("{} numbers", sides.size()), "one number, or [height, width]");
  return {sides[0].as<std::int64_t>(), sides[1].as<std::int64_t>()};
}

}  // namespace foretrain
