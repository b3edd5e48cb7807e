#include "model/scenario/model/model_reader.hpp"

namespace foretrain {

namespace {

/// Defaults of a family. Sources: gpt Radford et al. 2019; bert Devlin et al. 2018; mpt
/// MosaicML MPT-7B config (no_bias: true); llama Touvron et al. 2023 (SwiGLU, RMSNorm, no biases, output layer of its
/// own, as in Llama 1 to 3); vit Dosovitskiy et al. 2020; t5 Raffel et al. 2019 (RMSNorm, no biases, one table of words
/// for both stacks and the output layer).
struct FamilyDefaults {
  TransformerFamily family;
  bool gated_ffn, tied_embeddings, biases;
};
constexpr FamilyDefaults family_defaults[] = {
    {TransformerFamily::gpt, false, true, true},  {TransformerFamily::bert, false, true, true},
    {TransformerFamily::mpt, false, true, false}, {TransformerFamily::llama, true, false, false},
    {TransformerFamily::vit, false, false, true}, {TransformerFamily::t5, false, true, false}};

void check_heads(const MappingReader& model, const TransformerConfig& config) {
  model.fail_if(config.heads % config.kv_heads != 0, "kv_heads", "{0} heads cannot share {1} key–value heads evenly",
                "a divisor of {0}", config.heads, config.kv_heads);
  model.fail_if(!model.has("head_dim") && config.hidden % config.heads != 0, "heads",
                "hidden size {} is not divisible by {} heads", "a divisor of hidden, or head_dim", config.hidden,
                config.heads);
}

/// Reads keys of mixtures of experts.
void read_experts(const MappingReader& model, TransformerConfig& config) {
  if (config.experts == 1) {
    model.refuse({"dense_layers", "dense_ffn_hidden"}, "the model has no experts", "experts: 8, say");
  }
  if (const auto dense = model.find("dense_layers")) {
    config.dense_layers = dense->as<std::int64_t>({.range = {0, config.layers}});
  }
  if (config.dense_layers > 0) config.dense_ffn_hidden = model["dense_ffn_hidden"].as<std::int64_t>();
  model.fail_if(config.expert_imbalance < 1.0, "expert_imbalance", "the busiest expert below the mean", "1 or more");
}

/// Encoder and decoder are as wide and deep as each other unless the model says otherwise.
void read_stacks(const MappingReader& model, TransformerConfig& config) {
  if (!model.has("decoder_layers")) config.decoder_layers = config.layers;
  if (!model.has("decoder_sequence")) config.decoder_sequence = config.sequence;
  model.refuse({"layer_pattern", "kv_lora_rank", "mtp_layers", "dense_layers"}, "not known to encoder–decoders",
               "leave the key out, or family: llama");
}

enum class KeysSeen { full, sliding, mla };

void read_latent_attention(const MappingReader& model, TransformerConfig& config) {
  model.fail_if(!model.has("kv_lora_rank"), "attention_kind", "latent attention without its latent vectors",
                "also kv_lora_rank, such as 512");
  config.kv_lora_rank = model["kv_lora_rank"].as<std::int64_t>();
  config.q_lora_rank = model.value_or("q_lora_rank", config.q_lora_rank);
  config.rope_head_dim = model.value_or("rope_head_dim", config.rope_head_dim);
  config.v_head_dim = model.value_or("v_head_dim", config.head_dim);
  model.fail_if(config.kv_heads != config.heads, "kv_heads", "latent attention makes keys for every head",
                "leave it out, or as many as heads");
}

LayerKind kind_of_letter(char letter, const Field& pattern) {
  for (const auto& [known, kind] : {std::pair('M', LayerKind::mamba), std::pair('*', LayerKind::attention),
                                    std::pair('-', LayerKind::feed_forward), std::pair('E', LayerKind::experts)}) {
    if (letter == known) return kind;
  }
  pattern.fail(fmt::format("no kind of layer is called \"{}\"", letter),
               "M (Mamba-2), * (attention), - (feed-forward) and E (experts)");
}

void read_mamba(const MappingReader& model, TransformerConfig& config) {
  MambaConfig& mamba = config.mamba;
  mamba.heads = model["mamba_heads"].as<std::int64_t>();
  model.fill(mamba);
  model.fail_if(mamba.selective() && (mamba.head_dim != 1 || mamba.groups != 1), "mamba_step_rank",
                "layers of Mamba-1 have heads of one element, in one group",
                "also mamba_head_dim: 1 and mamba_groups: 1");
  model.fail_if(mamba.heads % mamba.groups != 0, model.has("mamba_groups") ? "mamba_groups" : "mamba_heads",
                "{0} heads in {1} groups", "a number of groups that divides {0}", mamba.heads, mamba.groups);
}

/// `attention_kind: full | sliding | mla` with the keys of each. Where it is left out, `window` says sliding and
/// `kv_lora_rank` says mla. Heads must be read.
void read_attention_kind(const MappingReader& model, TransformerConfig& config) {
  const KeysSeen usual = model.has("kv_lora_rank") ? KeysSeen::mla
                         : model.has("window")     ? KeysSeen::sliding
                                                   : KeysSeen::full;
  const KeysSeen kind = model.value_or("attention_kind", usual);
  model.fail_if(kind == KeysSeen::mla && model.has("window"), "window", "latent attention, which sees all keys",
                "attention_kind: sliding, or leave the key out");
  // attention_kind: full leaves what a preset says of the others without effect.
  if (kind == KeysSeen::mla) read_latent_attention(model, config);
  if (kind != KeysSeen::sliding) return;
  model.fail_if(!model.has("window"), "attention_kind", "sliding attention without a window",
                "also window, such as 4096");
  config.window = model["window"].as<std::int64_t>();
  config.full_attention_every = model.value_or("full_attention_every", config.full_attention_every);
}

/// `layer_pattern: M-M*-…` and the keys of Mamba-2 layers. Layers and experts must be read.
void read_layer_kinds(const MappingReader& model, TransformerConfig& config) {
  const auto pattern = model.find("layer_pattern");
  if (!pattern) return;
  for (const char letter : pattern->text()) config.pattern.push_back(kind_of_letter(letter, *pattern));
  const auto length = static_cast<std::int64_t>(config.pattern.size());
  pattern->fail_if(length != config.layers, "{} letters for {} layers", "a letter for each layer", length,
                   config.layers);
  const auto has = [&](LayerKind kind) { return std::ranges::find(config.pattern, kind) != config.pattern.end(); };
  pattern->fail_if(has(LayerKind::experts) != (config.experts > 1),
                   config.experts > 1 ? "experts, but no layer of them" : "layers of experts, but no experts",
                   "E for layers of experts, and experts: 128, say");
  if (has(LayerKind::mamba)) read_mamba(model, config);
}

}  // namespace

TransformerConfig read_transformer(const Field& field, TransformerFamily family) {
  const bool vit = family == TransformerFamily::vit;
  const MappingReader model = field.mapping(keys::model);
  const FamilyDefaults& defaults = family_defaults[static_cast<std::size_t>(family)];
  TransformerConfig config;
  config.family = family;
  std::tie(config.gated_ffn, config.tied_embeddings, config.biases) =
      std::tie(defaults.gated_ffn, defaults.tied_embeddings, defaults.biases);
  if (vit) config.classes = 1000;  // ImageNet's
  model.fill(config);
  if (!model.has("kv_heads")) config.kv_heads = config.heads;
  if (!model.has("head_dim")) config.head_dim = config.hidden / config.heads;
  check_heads(model, config);
  // Gated ones have two matrices before the activation, so Llama takes 2/3 of 4·hidden, rounded up to a multiple of 256
  // (meta-llama/llama, model.py, FeedForward).
  if (!model.has("ffn_hidden")) {
    config.ffn_hidden = config.gated_ffn ? (8 * config.hidden / 3 + 255) / 256 * 256 : 4 * config.hidden;
  }
  if (vit) {
    model.fail_if(config.image_size % config.patch_size != 0, "patch_size", "{} does not divide the image size {}",
                  "a divisor of image_size", config.patch_size, config.image_size);
    const std::int64_t side = config.image_size / config.patch_size;
    config.sequence = side * side + 1;  // one token per patch and the class token
    return config;
  }
  model.fail_if(config.experts_per_token > config.experts, "experts_per_token",
                "{0} experts per token, but there are {1}", "at most {1}", config.experts_per_token, config.experts);
  if (family == TransformerFamily::t5) read_stacks(model, config);
  read_experts(model, config);
  read_attention_kind(model, config);
  read_layer_kinds(model, config);
  return config;
}

}  // namespace foretrain
