#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model/base/text.hpp"
#include "model/scenario/model/model_reader.hpp"

namespace foretrain {

namespace {

/// `model_type` of a config.json → our family, and what its class in transformers sets where the file says nothing.
/// Models that differ from the family only in details without cost (parallel blocks, scaled logits, biases of some
/// layers) are taken for it.
struct TypeRow {
  std::string_view type, family;
  bool tied_embeddings = false;  ///< tie_word_embeddings
  std::string_view fixed = {};   ///< our keys that every model of the type has where its file says nothing, as YAML
};
constexpr std::string_view rotary_gpt = "{ gated_ffn: false, layer_norm: true, biases: true }";
constexpr TypeRow types[] = {
    {"gpt2", "gpt", true},
    {"gpt_bigcode", "gpt", true},
    {"gpt_neox", "llama", false, rotary_gpt},
    {"gptj", "llama", false, rotary_gpt},
    {"phi", "llama", false, rotary_gpt},
    {"starcoder2", "llama", true, rotary_gpt},
    {"falcon", "llama", true, "{ gated_ffn: false, layer_norm: true }"},
    {"opt", "gpt", true},
    {"bert", "bert", true},
    {"roberta", "bert", true},
    {"mpt", "mpt", true},
    {"bloom", "mpt", true, "{ biases: true, sequence: 2048 }"},
    {"t5", "t5", true, "{ sequence: 512 }"},
    {"mt5", "t5", false, "{ sequence: 512 }"},
    {"umt5", "t5", false, "{ sequence: 512 }"},
    {"llama", "llama"},
    {"llama4_text", "llama", false, "{ shared_experts: 1 }"},
    {"mistral", "llama"},
    {"mixtral", "llama"},
    {"qwen2", "llama"},
    {"qwen2_moe", "llama"},
    {"qwen3", "llama", false, "{ qk_norm: true }"},
    {"qwen3_moe", "llama", false, "{ qk_norm: true }"},
    {"deepseek_v2", "llama"},
    {"deepseek_v3", "llama"},
    {"kimi_k2", "llama"},
    {"gpt_oss", "llama", false, "{ attention_sinks: true, biases: true }"},
    {"gemma", "llama", true},
    {"gemma2", "llama", true, "{ post_norms: true }"},
    {"gemma3_text", "llama", true,
     "{ post_norms: true, qk_norm: true, heads: 8, kv_heads: 4, head_dim: 256, vocabulary: 262208, sequence: 131072 }"},
    {"phi3", "llama"},
    {"olmo", "llama", false, "{ layer_norm: true }"},
    {"olmo2", "llama", false, "{ qk_norm: true }"},
    {"olmoe", "llama", false, "{ qk_norm: true }"},
    {"cohere", "llama", true, "{ layer_norm: true }"},
    {"cohere2", "llama", true, "{ layer_norm: true }"},
    {"glm", "llama"},
    {"glm4", "llama", false, "{ post_norms: true }"},
    {"granite", "llama"},
    {"smollm3", "llama", true},
    {"nemotron", "llama", false, "{ gated_ffn: false, layer_norm: true }"},
    {"nemotron_h", "llama", false, "{ gated_ffn: false }"},
    {"mamba", "llama", true, "{ heads: 1, sequence: 2048, mamba_head_dim: 1, mamba_groups: 1 }"},
    {"mamba2", "llama", false, "{ heads: 1, sequence: 2048 }"},
    {"ministral", "llama"},
    {"vit", "vit"}};

/// Models of several parts, whose files have `vision_config` and, mostly, `text_config`.
struct PartsRow {
  std::string_view type;
  std::string_view language;   ///< model type
  std::string_view vision;     ///< our keys that its class or we add, as YAML; sizes of images are free where we do
  std::string_view projector;  ///< as YAML; without `hidden`: as wide as the patches that it joins
};
constexpr PartsRow parts_rows[] = {{"gemma3", "gemma3_text", "{}", "{ layers: 1, merge: 4, averaged: true }"},
                                   {"qwen2_5_vl", "qwen2", "{ gated_ffn: true, image_size: 448 }", "{ merge: 2 }"},
                                   {"qwen3_vl", "qwen3", "{ image_size: 512 }", "{ merge: 2 }"},
                                   {"qwen3_vl_moe", "qwen3_moe", "{ image_size: 512 }", "{ merge: 2 }"},
                                   {"llama4", "llama4_text", "{}", "{ layers: 3, merge: 2, hidden: 4096 }"}};

/// Our key and the names that it has in config files of the different model types.
struct KeyRow {
  std::string_view key;
  std::array<std::string_view, 4> theirs;
  std::string_view of = {};  ///< "vit too", "vit", or model types, a blank behind each; left out: all but vit
};
constexpr std::string_view vit_too = "vit too";
constexpr KeyRow renamed_keys[] = {
    {"layers", {"num_hidden_layers", "n_layer", "n_layers"}, vit_too},
    {"hidden", {"hidden_size", "n_embd", "d_model", "n_embed"}, vit_too},
    {"vocabulary", {"vocab_size"}},
    {"sequence", {"max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"}},
    {"sequence", {"seq_length"}, "bloom "},
    {"tied_embeddings", {"tie_word_embeddings"}},
    {"heads", {"num_attention_heads", "n_head", "n_heads", "num_heads"}, vit_too},
    {"kv_heads", {"num_key_value_heads"}, vit_too},
    {"head_dim", {"qk_nope_head_dim", "head_dim", "attention_head_dim"}, vit_too},
    {"ffn_hidden", {"moe_intermediate_size", "intermediate_size", "n_inner", "ffn_dim"}, vit_too},
    {"ffn_hidden", {"ffn_hidden_size"}, "falcon "},
    {"experts", {"n_routed_experts", "num_local_experts", "num_experts"}},
    {"experts_per_token", {"num_experts_per_tok", "experts_per_token"}},
    {"shared_experts", {"n_shared_experts"}},
    {"dense_layers", {"first_k_dense_replace"}},
    {"dense_ffn_hidden", {"intermediate_size"}},
    {"q_lora_rank", {"q_lora_rank"}},
    {"kv_lora_rank", {"kv_lora_rank"}},
    {"rope_head_dim", {"qk_rope_head_dim"}},
    {"v_head_dim", {"v_head_dim"}},
    {"mtp_layers", {"num_nextn_predict_layers"}},
    {"layers", {"num_layers"}, "t5 mt5 umt5 "},
    {"decoder_layers", {"num_decoder_layers"}, "t5 mt5 umt5 "},
    {"head_dim", {"d_kv"}, "t5 mt5 umt5 "},
    {"ffn_hidden", {"d_ff"}, "t5 mt5 umt5 "},
    {"layer_pattern", {"hybrid_override_pattern"}, "nemotron_h "},
    {"mamba_heads", {"mamba_num_heads"}, "nemotron_h "},
    {"mamba_head_dim", {"mamba_head_dim"}, "nemotron_h "},
    {"mamba_state", {"ssm_state_size", "state_size"}, "nemotron_h mamba mamba2 "},
    {"mamba_groups", {"n_groups", "mamba_n_groups"}, "nemotron_h mamba2 "},
    {"mamba_kernel", {"conv_kernel"}, "nemotron_h mamba mamba2 "},
    {"mamba_chunk", {"chunk_size"}, "nemotron_h mamba2 "},
    {"mamba_heads", {"num_heads"}, "mamba2 "},
    {"mamba_head_dim", {"head_dim"}, "mamba2 "},
    {"mamba_heads", {"intermediate_size"}, "mamba "},
    {"layers", {"depth"}, "vit"},
    {"image_size", {"image_size"}, "vit"},
    {"patch_size", {"patch_size"}, "vit"}};

/// Keys of attention and feed-forward halves, which models of Mamba alone have not.
constexpr std::string_view of_blocks[] = {"heads", "kv_heads", "head_dim", "ffn_hidden"};

/// Whether a row of the table says something about this model.
bool applies(const KeyRow& row, const YamlNode& config, const TypeRow& type) {
  if (type.family == "vit") return row.of == vit_too || row.of == "vit";
  if (row.of != vit_too && !row.of.empty()) return row.of.find(std::string(type.type) + " ") != std::string_view::npos;
  if (row.key == "dense_ffn_hidden") return config.find("first_k_dense_replace") != nullptr;
  // The file may state how many routed experts there would be even where the model has none.
  return !type.type.starts_with("mamba") || std::ranges::find(of_blocks, row.key) == std::end(of_blocks);
}

void add(YamlNode& model, std::string_view key, const SourcePosition& where, YamlNode value) {
  if (model.find(key) == nullptr) model.entries.push_back({std::string(key), where, std::move(value)});
}

void add_yaml(YamlNode& model, std::string_view yaml, const SourcePosition& where) {
  if (yaml.empty()) return;
  for (const YamlEntry& entry : parse_yaml(yaml, where.file).entries) add(model, entry.key, where, entry.value);
}

/// The keys of one transformer.
YamlNode shapes_of(const YamlNode& config, const TypeRow& type) {
  YamlNode model = yaml_mapping(config.where);
  const auto add_text = [&](std::string_view key, std::string_view text) {
    add(model, key, config.where, yaml_scalar(std::string(text), config.where));
  };
  add_text("family", type.family);
  add_text("name", type.type);
  std::vector<std::string_view> understood;
  for (const KeyRow& row : renamed_keys) {
    understood.insert(understood.end(), row.theirs.begin(), row.theirs.end());
    if (!applies(row, config, type)) continue;
    for (const std::string_view theirs : row.theirs) {
      const YamlEntry* entry = theirs.empty() ? nullptr : config.find(theirs);
      // `null` stands for the model type's default, which is the family's.
      if (entry == nullptr || entry->value.is_null()) continue;
      add(model, row.key, entry->where, entry->value);
      break;
    }
  }
  check_hugging_face_fields(config, type.family, understood);
  for (const DerivedKey& derived : derived_keys(config, type.type)) add_text(derived.key, derived.value);
  if (type.family != "vit") add_text("tied_embeddings", type.tied_embeddings ? "true" : "false");
  add_yaml(model, type.fixed, config.where);
  return model;
}

const YamlNode& part(const YamlNode& config, std::string_view key) {
  const YamlEntry* entry = config.find(key);
  if (entry == nullptr || !entry->value.is_mapping()) {
    throw ScenarioError(config.where, std::string(key), "this part is missing", "a mapping of its fields");
  }
  return entry->value;
}

/// The first row of a table whose type it is.
const auto* row_of(const auto& table, std::string_view type) {
  const auto* const found = std::ranges::find_if(table, [&](const auto& row) { return row.type == type; });
  return found == std::end(table) ? nullptr : found;
}

YamlNode several_parts(const YamlNode& config, const PartsRow& row) {
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
  YamlNode vision = shapes_of(eyes, {row.type, "vit"});
  add_yaml(vision, row.vision, where);
  YamlNode projector = parse_yaml(row.projector, where.file);
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
  add(model, "name", where, yaml_scalar(std::string(row.type), where));
  add(model, "vision", where, std::move(vision));
  add(model, "projector", where, std::move(projector));
  add(model, "language", where, shapes_of(text, *row_of(types, row.language)));
  return model;
}

}  // namespace

YamlNode hugging_face_model(const YamlNode& config) {
  const YamlEntry* type_entry = config.find("model_type");
  if (type_entry == nullptr) {
    throw ScenarioError(config.where, "model_type", "this key is missing", "a Hugging Face config.json");
  }
  const Field type(type_entry->value, "model_type");
  if (const PartsRow* row = row_of(parts_rows, type.text())) return several_parts(config, *row);
  if (const TypeRow* row = row_of(types, type.text())) return shapes_of(config, *row);
  std::vector<std::string> known;
  for (const TypeRow& row : types) known.emplace_back(row.type);
  for (const PartsRow& row : parts_rows) known.emplace_back(row.type);
  const std::string all = fmt::format("one of {}", or_list(known, known.size()));
  type.fail(fmt::format("no family for the model type \"{}\"", type.text()),
            did_you_mean(nearest_word(type.text(), known), all) + "; or write family and shapes yourself");
}

}  // namespace foretrain
