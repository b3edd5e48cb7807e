#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/model/model_reader.hpp"

namespace foretrain {

namespace {

/// A model type, our family and, where its class in transformers has some, our keys.
struct ModelType {
  std::string_view name, family;
  const YamlNode* keys = nullptr;
};
std::optional<ModelType> known_type(std::string_view name) {
  const YamlEntry* row = model_types("types").find(name);
  if (row == nullptr) return std::nullopt;
  return ModelType{row->key, row->value.at("family")->scalar, &row->value};
}

/// Keys of attention and feed-forward halves, which models of Mamba alone have not.
constexpr std::string_view of_blocks[] = {"heads", "kv_heads", "head_dim", "ffn_hidden"};

/// Whether a row of the names says something about this model.
bool applies(const YamlNode& row, const YamlNode& config, const ModelType& type) {
  const YamlNode* of = row.at("of");
  const std::string_view key = row.at("key")->scalar;
  if (type.family == "vit") return of != nullptr && (of->scalar == "vit" || of->scalar == "any");
  if (of != nullptr && of->is_sequence()) return std::ranges::count(of->items, type.name, &YamlNode::scalar) > 0;
  if (of != nullptr && of->scalar == "vit") return false;
  if (key == "dense_ffn_hidden") return config.find("first_k_dense_replace") != nullptr;
  // The file may state how many routed experts there would be even where the model has none.
  return !type.name.starts_with("mamba") || std::ranges::find(of_blocks, key) == std::end(of_blocks);
}

void add(YamlNode& model, std::string_view key, const SourcePosition& where, YamlNode value) {
  if (model.find(key) == nullptr) model.entries.push_back({std::string(key), where, std::move(value)});
}

/// A type's keys stand, for complaints, where its configuration does.
void add_all(YamlNode& model, YamlNode keys, const SourcePosition& where) {
  set_position(keys, where);
  for (const YamlEntry& entry : keys.entries) add(model, entry.key, where, entry.value);
}

/// The keys of one transformer.
YamlNode shapes_of(const YamlNode& config, const ModelType& type) {
  YamlNode model = yaml_mapping(config.where);
  const auto add_text = [&](std::string_view key, std::string_view text) {
    add(model, key, config.where, yaml_scalar(std::string(text), config.where));
  };
  add_text("family", type.family);
  add_text("name", type.name);
  std::vector<std::string_view> understood;
  for (const YamlNode& row : model_types("names").items) {
    const std::vector<YamlNode>& theirs = row.at("theirs")->items;
    for (const YamlNode& name : theirs) understood.push_back(name.scalar);
    if (!applies(row, config, type)) continue;
    for (const YamlNode& name : theirs) {
      const YamlEntry* entry = config.find(name.scalar);
      // `null` stands for the model type's default, which is the family's.
      if (entry == nullptr || entry->value.is_null()) continue;
      add(model, row.at("key")->scalar, entry->where, entry->value);
      break;
    }
  }
  check_hugging_face_fields(config, type.family, understood);
  for (const DerivedKey& derived : derived_keys(config, type.name)) add_text(derived.key, derived.value);
  const bool says_tied = type.keys != nullptr && type.keys->find("tied_embeddings") != nullptr;
  if (type.family != "vit" && !says_tied) add_text("tied_embeddings", "false");
  if (type.keys != nullptr) add_all(model, *type.keys, config.where);
  return model;
}

const YamlNode& part(const YamlNode& config, std::string_view key) {
  const YamlEntry* entry = config.find(key);
  if (entry == nullptr || !entry->value.is_mapping()) {
    throw ScenarioError(config.where, std::string(key), "this part is missing", "a mapping of its fields");
  }
  return entry->value;
}

YamlNode several_parts(const YamlNode& config, const YamlEntry& row) {
  const SourcePosition& where = config.where;
  YamlNode rest = config;
  rest.erase("vision_config");
  YamlNode text = rest;
  if (config.find("text_config") != nullptr) {
    text = part(config, "text_config");
    rest.erase("text_config");
    check_hugging_face_fields(rest, "vision_language", {});
    if (const YamlEntry* tied = config.find("tie_word_embeddings")) add(text, tied->key, tied->where, tied->value);
  }
  const YamlNode& eyes = part(config, "vision_config");
  YamlNode vision = shapes_of(eyes, {row.key, "vit"});
  add_all(vision, *row.value.at("vision"), where);
  YamlNode projector = *row.value.at("projector");
  set_position(projector, where);
  const auto number = [&](std::int64_t value) { return yaml_scalar(std::to_string(value), where); };
  if (const YamlEntry* inner = eyes.find("deepstack_visual_indexes")) {
    add(projector, "inner_layers", where, number(static_cast<std::int64_t>(inner->value.items.size())));
  }
  if (const YamlEntry* width = vision.find("hidden")) {
    const std::int64_t merge = Field(projector.find("merge")->value, "merge").integer();
    add(projector, "hidden", where, number(merge * merge * Field(width->value, "hidden_size").integer()));
  }
  YamlNode model = yaml_mapping(where);
  add(model, "family", where, yaml_scalar("vision_language", where));
  add(model, "name", where, yaml_scalar(row.key, where));
  add(model, "vision", where, std::move(vision));
  add(model, "projector", where, std::move(projector));
  add(model, "language", where, shapes_of(text, *known_type(row.value.at("language")->scalar)));
  return model;
}

}  // namespace

const YamlNode& model_types(std::string_view part) {
  return cached_yaml_file((data_directory() / "model_types.yaml").string()).find(part)->value;
}

YamlNode hugging_face_model(const YamlNode& config) {
  const YamlEntry* type_entry = config.find("model_type");
  if (type_entry == nullptr) {
    throw ScenarioError(config.where, "model_type", "this key is missing", "a Hugging Face config.json");
  }
  const Field type(type_entry->value, "model_type");
  if (const YamlEntry* row = model_types("parts").find(type.text())) return several_parts(config, *row);
  if (const auto known = known_type(type.text())) return shapes_of(config, *known);
  std::vector<std::string> known;
  for (const char* part : {"types", "parts"}) {
    for (const YamlEntry& row : model_types(part).entries) known.push_back(row.key);
  }
  const std::string all = fmt::format("one of {}", or_list(known, known.size()));
  type.fail(fmt::format("no family for the model type \"{}\"", type.text()),
            did_you_mean(nearest_word(type.text(), known), all) + "; or write family and shapes yourself");
}

}  // namespace foretrain
