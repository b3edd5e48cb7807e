#include <fmt/format.h>

#include <array>
#include <utility>

#include "model/base/text.hpp"
#include "model/scenario/model_reader.hpp"

namespace foretrain {

namespace {

/// `model_type` of a config.json → our family. Models that differ from the family only in details without cost (rotary
/// or learned positions, parallel blocks) are taken for it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> model_types = {{{"gpt2", "gpt"},
                                                                                        {"gpt_neox", "gpt"},
                                                                                        {"opt", "gpt"},
                                                                                        {"bert", "bert"},
                                                                                        {"roberta", "bert"},
                                                                                        {"mpt", "mpt"},
                                                                                        {"llama", "llama"},
                                                                                        {"mistral", "llama"},
                                                                                        {"mixtral", "llama"},
                                                                                        {"qwen2", "llama"},
                                                                                        {"qwen3", "llama"},
                                                                                        {"qwen3_moe", "llama"},
                                                                                        {"deepseek_v2", "llama"},
                                                                                        {"deepseek_v3", "llama"},
                                                                                        {"kimi_k2", "llama"},
                                                                                        {"gpt_oss", "llama"},
                                                                                        {"phi3", "llama"},
                                                                                        {"vit", "vit"}}};

/// Our key and the names that it has in config files of the different model types.
struct KeyRow {
  std::string_view key;
  std::array<std::string_view, 4> theirs;
  bool for_vit;
};
constexpr std::array<KeyRow, 20> keys = {
    {{"layers", {"num_hidden_layers", "n_layer", "n_layers"}, true},
     {"hidden", {"hidden_size", "n_embd", "d_model"}, true},
     {"heads", {"num_attention_heads", "n_head", "n_heads"}, true},
     {"kv_heads", {"num_key_value_heads"}, true},
     {"head_dim", {"qk_nope_head_dim", "head_dim"}, true},
     {"ffn_hidden", {"moe_intermediate_size", "intermediate_size", "n_inner", "ffn_dim"}, true},
     {"vocabulary", {"vocab_size"}, false},
     {"sequence", {"max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"}, false},
     {"tied_embeddings", {"tie_word_embeddings"}, false},
     {"experts", {"n_routed_experts", "num_local_experts", "num_experts"}, false},
     {"experts_per_token", {"num_experts_per_tok"}, false},
     {"shared_experts", {"n_shared_experts"}, false},
     {"dense_layers", {"first_k_dense_replace"}, false},
     {"dense_ffn_hidden", {"intermediate_size"}, false},
     {"q_lora_rank", {"q_lora_rank"}, false},
     {"kv_lora_rank", {"kv_lora_rank"}, false},
     {"rope_head_dim", {"qk_rope_head_dim"}, false},
     {"v_head_dim", {"v_head_dim"}, false},
     {"image_size", {"image_size"}, true},
     {"patch_size", {"patch_size"}, true}}};

std::string_view family_of(const Field& model_type) {
  std::vector<std::string> known;
  for (const auto& [theirs, family] : model_types) {
    if (model_type.text() == theirs) return family;
    known.emplace_back(theirs);
  }
  model_type.fail(fmt::format("no family for the model type \"{}\"", model_type.text()),
                  fmt::format("one of {}; or write family and shapes yourself", or_list(known, known.size())));
}

}  // namespace

YamlNode read_hugging_face_config(const std::string& file) {
  const YamlNode& config = cached_yaml_file(file);
  const YamlEntry* type = config.find("model_type");
  if (type == nullptr) {
    throw ScenarioError(config.where, "model_type", "this key is missing", "a Hugging Face config.json");
  }
  const std::string_view family = family_of(Field(type->value, "model_type"));
  YamlNode model = yaml_mapping(config.where);
  model.entries.push_back({"family", type->where, yaml_scalar(std::string(family), type->value.where)});
  model.entries.push_back({"name", type->where, yaml_scalar(type->value.scalar, type->value.where)});
  const bool dense_layers = config.find("first_k_dense_replace") != nullptr;
  for (const KeyRow& row : keys) {
    if (family == "vit" && !row.for_vit) continue;
    if (row.key == "dense_ffn_hidden" && !dense_layers) continue;
    for (const std::string_view theirs : row.theirs) {
      const YamlEntry* entry = theirs.empty() ? nullptr : config.find(theirs);
      // `null` stands for the model type's default, which is the family's.
      if (entry == nullptr || entry->value.is_null()) continue;
      if (family != "vit" && (row.key == "image_size" || row.key == "patch_size")) continue;
      model.entries.push_back({std::string(row.key), entry->where, entry->value});
      break;
    }
  }
  return model;
}

}  // namespace foretrain
