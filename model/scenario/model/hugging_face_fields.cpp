#include "model/scenario/model/model_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

namespace {

std::optional<Field> field_of(const YamlNode& config, std::string_view key) {
  const YamlEntry* entry = config.find(key);
  if (entry == nullptr || entry->value.is_null()) return std::nullopt;
  return Field(entry->value, std::string(key));
}

std::int64_t integer_of(const YamlNode& config, std::string_view key, std::int64_t fallback) {
  const auto field = field_of(config, key);
  return field ? field->integer({0, 1'000'000'000}) : fallback;
}

/// Every how many layers `layer_types` has full attention; 0 where none has, 1 where all have.
std::int64_t period_of(const Field& types) {
  const std::vector<Field> list = types.list();
  std::vector<bool> full;
  for (const Field& type : list) {
    if (type.text() != "full_attention" && type.text() != "sliding_attention") {
      type.fail(fmt::format("layers of \"{}\" are not modelled", type.text()), "full_attention or sliding_attention");
    }
    full.push_back(type.text() == "full_attention");
  }
  const auto first = std::ranges::find(full, true);
  if (first == full.end()) return 0;
  const auto period = static_cast<std::size_t>(first - full.begin()) + 1;
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

void add_window(const YamlNode& config, std::string_view type, std::vector<DerivedKey>& keys) {
  // Of four layers three attend within chunks, with rotated positions (modeling_llama4.py).
  if (const auto chunk = field_of(config, "attention_chunk_size"); chunk && type == "llama4_text") {
    keys.push_back({"window", std::to_string(chunk->integer({1, 1'000'000'000}))});
    keys.push_back({"full_attention_every", "4"});
    return;
  }
  const auto window = field_of(config, "sliding_window");
  if (!window || (window->is_scalar() && window->text() == "false")) return;
  const bool asks = type.starts_with("qwen");  // these state a window and whether it is used
  const auto used = field_of(config, "use_sliding_window");
  if (used ? !used->flag() : asks) return;
  if (const auto full_below = field_of(config, "max_window_layers");
      full_below && asks && full_below->integer({0}) > 0) {
    full_below->fail("a window in the upper layers alone", "0; or write family and shapes yourself");
  }
  const auto types = field_of(config, "layer_types");
  const std::int64_t period = types ? period_of(*types) : usual_period(config, type);
  if (period == 1) return;
  keys.push_back({"window", std::to_string(window->integer({1, 1'000'000'000}))});
  if (period > 1) keys.push_back({"full_attention_every", std::to_string(period)});
}

/// Shared experts whose width is stated rather than their number: so many of the routed ones' width.
void add_shared_experts(const YamlNode& config, std::vector<DerivedKey>& keys) {
  for (const char* name : {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"}) {
    const auto shared = field_of(config, name);
    const std::int64_t routed = integer_of(config, "moe_intermediate_size", 0);
    if (!shared || routed == 0) continue;
    const std::int64_t width = shared->integer({0, 1'000'000'000});
    if (width % routed != 0) shared->fail(fmt::format("{} is no multiple of {}", width, routed), "a multiple");
    keys.push_back({"shared_experts", std::to_string(width / routed)});
  }
}

bool is_true(const YamlNode& config, std::string_view key) {
  const auto field = field_of(config, key);
  return field && field->flag();
}

/// Older files say that all heads share one of keys and values; Falcon's state a number beside that, which counts in
/// its second architecture alone (configuration_falcon.py).
void add_key_heads(const YamlNode& config, std::vector<DerivedKey>& keys) {
  const auto stated = field_of(config, "num_kv_heads");
  if (stated && is_true(config, "new_decoder_architecture")) {
    keys.push_back({"kv_heads", stated->text()});
  } else if (is_true(config, "multi_query")) {
    keys.push_back({"kv_heads", "1"});
  }
}

/// Layers of Mamba alone.
void add_mamba(const YamlNode& config, std::string_view type, std::vector<DerivedKey>& keys) {
  const std::int64_t layers = integer_of(config, "num_hidden_layers", integer_of(config, "n_layer", 0));
  keys.push_back({"layer_pattern", std::string(static_cast<std::size_t>(std::min<std::int64_t>(layers, 10'000)), 'M')});
  if (type != "mamba") return;
  const auto rank = field_of(config, "time_step_rank");
  const bool stated = rank && rank->text() != "auto";
  const std::int64_t usual = (integer_of(config, "hidden_size", 0) + 15) / 16;  // configuration_mamba.py
  keys.push_back({"mamba_step_rank", stated ? rank->text() : std::to_string(usual)});
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

}  // namespace

std::vector<DerivedKey> derived_keys(const YamlNode& config, std::string_view type) {
  std::vector<DerivedKey> keys;
  add_window(config, type, keys);
  add_shared_experts(config, keys);
  add_key_heads(config, keys);
  if (type.starts_with("mamba")) add_mamba(config, type, keys);
  if (const auto activation = field_of(config, "feed_forward_proj")) {
    keys.push_back({"gated_ffn", activation->text().starts_with("gated-") ? "true" : "false"});
  }
  if (const auto width = field_of(config, "word_embed_proj_dim");
      width && width->integer() != integer_of(config, "hidden_size", 0)) {
    width->fail("words of another width than the layers", "hidden_size; or write family and shapes yourself");
  }
  return keys;
}

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

}  // namespace foretrain
