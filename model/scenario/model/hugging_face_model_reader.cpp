// config.json of Hugging Face as keys of ours.
#include "model/scenario/model/model_reader.hpp"

#include <functional>
#include <iterator>

#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"

namespace foretrain {

namespace {

/// A part of scenarios/model_types.yaml: what is known of such files.
const YamlNode& model_types(std::string_view part) {
  return cached_yaml_file((data_directory() / "model_types.yaml").string()).find(part)->value;
}

/// Takes one of our keys and its value, worked out of several fields.
using AddKey = std::function<void(std::string_view key, std::string_view value)>;

std::optional<Field> field_of(const YamlNode& config, std::string_view key) {
  const YamlEntry* entry = config.find(key);
  if (entry == nullptr || entry->value.is_null()) return std::nullopt;
  return Field(entry->value, std::string(key));
}

std::int64_t integer_of(const YamlNode& config, std::string_view key, std::int64_t fallback) {
  const auto field = field_of(config, key);
  return field ? field->as<std::int64_t>({.range = {0, 1'000'000'000}}) : fallback;
}

/// Every how many layers `layer_types` has full attention; 0 where none has, 1 where all have.
std::int64_t period_of(const Field& types) {
  const std::vector<Field> list = types.list();
  std::vector<bool> full;
  for (const Field& type : list) {
    type.fail_if(type.text() != "full_attention" && type.text() != "sliding_attention",
                 "layers of \"{}\" are not modelled", "full_attention or sliding_attention", type.text());
    full.push_back(type.text() == "full_attention");
  }
  const auto period = static_cast<std::size_t>(std::ranges::find(full, true) - full.begin()) + 1;
  if (period > full.size()) return 0;
  for (std::size_t i = 0; i < full.size(); ++i) {
    types.fail_if(full[i] != ((i + 1) % period == 0), "full attention at no fixed distance",
                  "every n-th layer; or write family and shapes yourself");
  }
  return static_cast<std::int64_t>(period);
}

/// The period of types whose layers alternate, where the file does not list them: Gemma 2 (configuration_gemma2.py),
/// Gemma 3 and Cohere 2 (sliding_window_pattern, 6 and 4), gpt-oss (configuration_gpt_oss.py).
std::int64_t usual_period(const YamlNode& config, std::string_view type) {
  if (type == "gemma2" || type == "gpt_oss") return 2;
  if (type == "gemma3_text") return integer_of(config, "sliding_window_pattern", 6);
  if (type == "cohere2") return integer_of(config, "sliding_window_pattern", 4);
  return 0;
}

void add_window(const YamlNode& config, std::string_view type, const AddKey& add_key) {
  // Of four layers three attend within chunks, with rotated positions (modeling_llama4.py).
  if (const auto chunk = field_of(config, "attention_chunk_size"); chunk && type == "llama4_text") {
    add_key("window", std::to_string(chunk->as<std::int64_t>({.range = {1, 1'000'000'000}})));
    add_key("full_attention_every", "4");
    return;
  }
  const auto window = field_of(config, "sliding_window");
  if (!window || (window->is_scalar() && window->text() == "false")) return;
  const bool asks = type.starts_with("qwen");  // these state a window and whether it is used
  const auto used = field_of(config, "use_sliding_window");
  if (used ? !used->as<bool>() : asks) return;
  if (const auto full_below = field_of(config, "max_window_layers"); full_below && asks) {
    full_below->fail_if(full_below->as<std::int64_t>({.range = {0}}) > 0, "a window in the upper layers alone",
                        "0; or write family and shapes yourself");
  }
  const auto types = field_of(config, "layer_types");
  const std::int64_t period = types ? period_of(*types) : usual_period(config, type);
  if (period == 1) return;
  add_key("window", std::to_string(window->as<std::int64_t>({.range = {1, 1'000'000'000}})));
  if (period > 1) add_key("full_attention_every", std::to_string(period));
}

/// Shared experts whose width is stated rather than their number: so many of the routed ones' width.
void add_shared_experts(const YamlNode& config, const AddKey& add_key) {
  for (const char* name : {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"}) {
    const auto shared = field_of(config, name);
    const std::int64_t routed = integer_of(config, "moe_intermediate_size", 0);
    if (!shared || routed == 0) continue;
    const std::int64_t width = shared->as<std::int64_t>({.range = {0, 1'000'000'000}});
    if (width % routed != 0) shared->fail(fmt::format("{} is no multiple of {}", width, routed), "a multiple");
    add_key("shared_experts", std::to_string(width / routed));
  }
}

/// Older files say that all heads share one of keys and values; Falcon's state a number beside that, which counts in
/// its second architecture alone (configuration_falcon.py).
void add_key_heads(const YamlNode& config, const AddKey& add_key) {
  const auto stated = field_of(config, "num_kv_heads"), second = field_of(config, "new_decoder_architecture"),
             shared = field_of(config, "multi_query");
  if (stated && second && second->as<bool>()) {
    add_key("kv_heads", stated->text());
  } else if (shared && shared->as<bool>()) {
    add_key("kv_heads", "1");
  }
}

/// Layers of Mamba alone.
void add_mamba(const YamlNode& config, std::string_view type, const AddKey& add_key) {
  const std::int64_t layers = integer_of(config, "num_hidden_layers", integer_of(config, "n_layer", 0));
  add_key("layer_pattern", std::string(static_cast<std::size_t>(std::min<std::int64_t>(layers, 10'000)), 'M'));
  if (type != "mamba") return;
  const auto rank = field_of(config, "time_step_rank");
  const bool stated = rank && rank->text() != "auto";
  const std::int64_t usual = (integer_of(config, "hidden_size", 0) + 15) / 16;  // configuration_mamba.py
  add_key("mamba_step_rank", stated ? rank->text() : std::to_string(usual));
}

/// Words with which fields end that state what is computed.
constexpr std::array<std::string_view, 14> shape_endings = {"_size",    "_dim",   "_rank",     "_layers",  "_heads",
                                                            "_experts", "_freq",  "_step",     "_pattern", "_types",
                                                            "_config",  "_width", "_channels", "_kernel"};

/// Absent in effect: nothing, zero, no.
bool says_nothing(const YamlNode& value) {
  if (value.is_null()) return true;
  if (!value.is_scalar()) return value.items.empty() && value.entries.empty();
  return value.scalar == "0" || value.scalar == "false" || value.scalar.empty();
}

/// Windows, heads of keys, gates, shared experts and layers of Mamba.
void add_derived_keys(const YamlNode& config, std::string_view type, const AddKey& add_key) {
  add_window(config, type, add_key);
  add_shared_experts(config, add_key);
  add_key_heads(config, add_key);
  if (type.starts_with("mamba")) add_mamba(config, type, add_key);
  if (const auto activation = field_of(config, "feed_forward_proj")) {
    add_key("gated_ffn", activation->text().starts_with("gated-") ? "true" : "false");
  }
  if (const auto width = field_of(config, "word_embed_proj_dim")) {
    width->fail_if(width->as<std::int64_t>() != integer_of(config, "hidden_size", 0),
                   "words of another width than the layers", "hidden_size; or write family and shapes yourself");
  }
}

/// Refuses fields that are named like a shape (…_size, …_layers, …) and are neither `understood` nor known to cost
/// nothing, and those whose usual value alone is understood by the family.
void check_hugging_face_fields(const YamlNode& config, std::string_view family,
                               std::span<const std::string_view> understood) {
  for (const YamlEntry& entry : config.entries) {
    const Field field(entry.value, entry.key);
    if (const YamlEntry* usual = model_types("usual").find(entry.key)) {
      if (entry.key == "is_encoder_decoder" && family == "t5") continue;
      const std::string& value = usual->value.scalar;
      const bool fits = entry.value.is_null() || (field.is_scalar() && field.text() == value);
      field.fail_if(!fits && !(says_nothing(entry.value) && value != "1"), "this is not modelled",
                    "{0}; or write family and shapes yourself", value);
      continue;
    }
    field.fail_if(entry.key == "mlp_only_layers" && !says_nothing(entry.value),
                  "layers without experts among those with them", "none; or write family and shapes yourself");
    const bool shape = std::ranges::any_of(
        shape_endings, [&](std::string_view ending) { return std::string_view(entry.key).ends_with(ending); });
    if (!shape || says_nothing(entry.value)) continue;
    if (std::ranges::find(understood, entry.key) != understood.end()) continue;
    if (std::ranges::count(model_types("harmless").items, entry.key, &YamlNode::scalar) > 0) continue;
    field.fail("a field that is not understood, and named like a shape",
               "none such; or write family and shapes yourself, as scenarios/models do");
  }
}

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
  add_derived_keys(config, type.name, add_text);
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
    const std::int64_t merge = Field(projector.find("merge")->value, "merge").as<std::int64_t>();
    add(projector, "hidden", where, number(merge * merge * Field(width->value, "hidden_size").as<std::int64_t>()));
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
