#include "model/scenario/model/model_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/base/words.hpp"

namespace foretrain {

namespace {

constexpr IntegerRange dimension_range{1, 1'000'000};

enum class KeysSeen { full, sliding, mla };

void read_latent_attention(const MappingReader& model, TransformerConfig& config) {
  model.fail_if(!model.has("kv_lora_rank"), "attention_kind", "latent attention without its latent vectors",
                "kv_lora_rank: 512, say, beside it");
  config.kv_lora_rank = model["kv_lora_rank"].integer(dimension_range);
  config.q_lora_rank = model.integer_or("q_lora_rank", 0, dimension_range);
  config.rope_head_dim = model.integer_or("rope_head_dim", 0, {0, dimension_range.maximum});
  config.v_head_dim = model.integer_or("v_head_dim", config.head_dim, dimension_range);
  model.fail_if(config.kv_heads != config.heads, "kv_heads", "latent attention makes keys for every head",
                "leave it out, or as many as heads");
}

void read_window(const MappingReader& model, TransformerConfig& config) {
  model.fail_if(!model.has("window"), "attention_kind", "sliding attention without a window",
                "window: 4096, say, beside it");
  config.window = model["window"].integer({1, 1'000'000'000});
  config.full_attention_every = model.integer_or("full_attention_every", 0, {1, 100'000});
}

LayerKind kind_of_letter(char letter, const Field& pattern) {
  switch (letter) {
    case 'M':
      return LayerKind::mamba;
    case '*':
      return LayerKind::attention;
    case '-':
      return LayerKind::feed_forward;
    case 'E':
      return LayerKind::experts;
    default:
      pattern.fail(fmt::format("no kind of layer is called \"{}\"", letter),
                   "M (Mamba-2), * (attention), - (feed-forward) and E (experts)");
  }
}

void read_mamba(const MappingReader& model, TransformerConfig& config) {
  MambaConfig& mamba = config.mamba;
  mamba.heads = model["mamba_heads"].integer(dimension_range);
  model.fill(mamba);
  model.fail_if(mamba.selective() && (mamba.head_dim != 1 || mamba.groups != 1), "mamba_step_rank",
                "layers of Mamba-1 have heads of one element, in one group",
                "mamba_head_dim: 1 and mamba_groups: 1 beside it");
  if (mamba.heads % mamba.groups != 0) {
    model.fail(model.has("mamba_groups") ? "mamba_groups" : "mamba_heads",
               fmt::format("{} heads in {} groups", mamba.heads, mamba.groups),
               fmt::format("a number of groups that divides {}", mamba.heads));
  }
}

}  // namespace

void read_attention_kind(const MappingReader& model, TransformerConfig& config) {
  KeysSeen kind = KeysSeen::full;
  if (model.has("window")) kind = KeysSeen::sliding;
  if (model.has("kv_lora_rank")) kind = KeysSeen::mla;
  kind = model.choice_or("attention_kind", kind);
  if (!model.has("kv_lora_rank")) {
    model.refuse({"q_lora_rank", "rope_head_dim", "v_head_dim"}, "latent attention without its keys",
                 "kv_lora_rank: 512, say");
  }
  if (!model.has("window")) {
    model.refuse({"full_attention_every"}, "every layer attends to all keys", "window: 4096, say, beside it");
  }
  if (kind == KeysSeen::mla) {
    model.refuse({"window"}, "latent attention, which sees all keys", "attention_kind: sliding, or leave the key out");
  }
  // attention_kind: full leaves what a preset says of the others without effect.
  if (kind == KeysSeen::mla) read_latent_attention(model, config);
  if (kind == KeysSeen::sliding) read_window(model, config);
}

void read_layer_kinds(const MappingReader& model, TransformerConfig& config) {
  const auto pattern = model.find("layer_pattern");
  if (!pattern) {
    model.refuse({"mamba_heads", "mamba_head_dim", "mamba_state", "mamba_groups", "mamba_kernel", "mamba_chunk",
                  "mamba_step_rank"},
                 "no layer is a Mamba-2 layer", "layer_pattern: M-M*-, say, beside it");
    return;
  }
  for (const char letter : pattern->text()) config.pattern.push_back(kind_of_letter(letter, *pattern));
  const auto length = static_cast<std::int64_t>(config.pattern.size());
  if (length != config.layers) {
    pattern->fail(fmt::format("{} letters for {} layers", length, config.layers), "a letter for each layer");
  }
  const auto has = [&](LayerKind kind) { return std::ranges::find(config.pattern, kind) != config.pattern.end(); };
  pattern->fail_if(has(LayerKind::experts) != (config.experts > 1),
                   config.experts > 1 ? "experts, but no layer of them" : "layers of experts, but no experts",
                   "E for layers of experts, and experts: 128, say");
  if (has(LayerKind::mamba)) read_mamba(model, config);
}

}  // namespace foretrain
