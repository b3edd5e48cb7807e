#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model/base/text.hpp"
#include "model/scenario/model/hugging_face_fields.hpp"
#include "model/scenario/model/model_reader.hpp"

namespace foretrain {

namespace {

/// `model_type` of a config.json → our family, and what its class in transformers sets where the file says nothing.
/// Models that differ from the family only in details without cost (rotary or learned positions, parallel blocks) are
/// taken for it.
struct TypeRow {
  std::string_view type, family;
  bool tied_embeddings = false;  ///< tie_word_embeddings
  std::string_view fixed = {};   ///< our keys that every model of the type has, as YAML
};
constexpr std::array<TypeRow, 26> types = {{{"gpt2", "gpt", true},
                                            {"gpt_neox", "gpt"},
                                            {"opt", "gpt", true},
                                            {"bert", "bert", true},
                                            {"roberta", "bert", true},
                                            {"mpt", "mpt", true},
                                            {"llama", "llama"},
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
                                            {"gemma3_text", "llama", true, "{ post_norms: true, qk_norm: true }"},
                                            {"phi3", "llama"},
                                            {"olmo2", "llama", false, "{ qk_norm: true }"},
                                            {"nemotron", "llama", false, "{ gated_ffn: false }"},
                                            {"nemotron_h", "llama", false, "{ gated_ffn: false }"},
                                            {"ministral", "llama"},
                                            {"vit", "vit"}}};

/// Our key and the names that it has in config files of the different model types.
struct KeyRow {
  std::string_view key;
  std::array<std::string_view, 4> theirs;
  bool for_vit = false;
};
constexpr std::array<KeyRow, 26> renamed_keys = {
    {{"layers", {"num_hidden_layers", "n_layer", "n_layers"}, true},
     {"hidden", {"hidden_size", "n_embd", "d_model"}, true},
     {"heads", {"num_attention_heads", "n_head", "n_heads"}, true},
     {"kv_heads", {"num_key_value_heads"}, true},
     {"head_dim", {"qk_nope_head_dim", "head_dim", "attention_head_dim"}, true},
     {"ffn_hidden", {"moe_intermediate_size", "intermediate_size", "n_inner", "ffn_dim"}, true},
     {"vocabulary", {"vocab_size"}},
     {"sequence", {"max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"}},
     {"tied_embeddings", {"tie_word_embeddings"}},
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
     {"layer_pattern", {"hybrid_override_pattern"}},
     {"mamba_heads", {"mamba_num_heads"}},
     {"mamba_head_dim", {"mamba_head_dim"}},
     {"mamba_state", {"ssm_state_size"}},
     {"mamba_groups", {"n_groups", "mamba_n_groups"}},
     {"image_size", {"image_size"}, true},
     {"patch_size", {"patch_size"}, true}}};

const TypeRow& row_of(const Field& model_type) {
  std::vector<std::string> known;
  for (const TypeRow& row : types) {
    if (model_type.text() == row.type) return row;
    known.emplace_back(row.type);
  }
  model_type.fail(fmt::format("no family for the model type \"{}\"", model_type.text()),
                  fmt::format("one of {}; or write family and shapes yourself", or_list(known, known.size())));
}

/// Whether a row of the table says something about this model.
bool applies(const KeyRow& row, const YamlNode& config, const TypeRow& type) {
  const bool vit = type.family == "vit";
  if (vit) return row.for_vit;
  if (row.key == "image_size" || row.key == "patch_size") return false;
  if (row.key == "dense_ffn_hidden") return config.find("first_k_dense_replace") != nullptr;
  if (row.key.starts_with("mamba_") || row.key == "layer_pattern") return type.type == "nemotron_h";
  // The file may state how many routed experts there would be even where the model has none.
  return true;
}

}  // namespace

YamlNode read_hugging_face_config(const std::string& file) { return hugging_face_model(cached_yaml_file(file)); }

YamlNode hugging_face_model(const YamlNode& config) {
  const YamlEntry* type_entry = config.find("model_type");
  if (type_entry == nullptr) {
    throw ScenarioError(config.where, "model_type", "this key is missing", "a Hugging Face config.json");
  }
  const TypeRow& type = row_of(Field(type_entry->value, "model_type"));
  YamlNode model = yaml_mapping(config.where);
  const auto add = [&](std::string_view key, const SourcePosition& where, YamlNode value) {
    if (model.find(key) == nullptr) model.entries.push_back({std::string(key), where, std::move(value)});
  };
  const auto add_text = [&](std::string_view key, std::string text) {
    add(key, type_entry->where, yaml_scalar(std::move(text), type_entry->value.where));
  };
  add_text("family", std::string(type.family));
  add("name", type_entry->where, type_entry->value);
  std::vector<std::string_view> understood;
  for (const KeyRow& row : renamed_keys) {
    understood.insert(understood.end(), row.theirs.begin(), row.theirs.end());
    if (!applies(row, config, type)) continue;
    for (const std::string_view theirs : row.theirs) {
      const YamlEntry* entry = theirs.empty() ? nullptr : config.find(theirs);
      // `null` stands for the model type's default, which is the family's.
      if (entry == nullptr || entry->value.is_null()) continue;
      add(row.key, entry->where, entry->value);
      break;
    }
  }
  check_hugging_face_fields(config, understood);
  for (const DerivedKey& derived : derived_keys(config, type.type)) add_text(derived.key, derived.value);
  if (type.family != "vit") add_text("tied_embeddings", type.tied_embeddings ? "true" : "false");
  if (!type.fixed.empty()) {
    for (const YamlEntry& entry : parse_yaml(type.fixed, config.where.file).entries)
      add(entry.key, entry.where, entry.value);
  }
  return model;
}

}  // namespace foretrain
