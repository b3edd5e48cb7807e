#include <fmt/format.h>

#include <array>

#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/scenario/model/model_reader.hpp"

namespace foretrain {

namespace {

constexpr std::int64_t largest_transformer_dimension = 100'000'000;

constexpr std::int64_t usual_classes = 1000;  // ImageNet's

/// What a family means when nothing else is said. Sources: gpt Radford et al. 2019; bert Devlin et al. 2018; mpt
/// MosaicML MPT-7B config (no_bias: true); llama Touvron et al. 2023 (SwiGLU, RMSNorm, no biases, output layer of its
/// own, as in Llama 1 to 3); vit Dosovitskiy et al. 2020; t5 Raffel et al. 2019 (RMSNorm, no biases, one table of words
/// for both stacks and the output layer).
struct FamilyDefaults {
  TransformerFamily family;
  bool gated_ffn;
  bool tied_embeddings;
  bool biases;
};
constexpr std::array<FamilyDefaults, 6> family_defaults = {{{TransformerFamily::gpt, false, true, true},
                                                            {TransformerFamily::bert, false, true, true},
                                                            {TransformerFamily::mpt, false, true, false},
                                                            {TransformerFamily::llama, true, false, false},
                                                            {TransformerFamily::vit, false, false, true},
                                                            {TransformerFamily::t5, false, true, false}}};

/// Feed-forward width when none is given: 4·hidden; gated ones have two matrices before the activation, so Llama takes
/// 2/3 of that, rounded up to a multiple of 256 (meta-llama/llama, model.py, FeedForward).
std::int64_t default_ffn_hidden(std::int64_t hidden, bool gated) {
  if (!gated) return 4 * hidden;
  constexpr std::int64_t multiple = 256;
  return (8 * hidden / 3 + multiple - 1) / multiple * multiple;
}

void read_vit_shape(const MappingReader& model, TransformerConfig& config) {
  if (config.image_size % config.patch_size != 0) {
    model.fail("patch_size", fmt::format("{} does not divide the image size {}", config.patch_size, config.image_size),
               "a divisor of image_size");
  }
  // One token per patch and the class token.
  const std::int64_t side = config.image_size / config.patch_size;
  config.sequence = side * side + 1;
}

void check_heads(const MappingReader& model, const TransformerConfig& config) {
  if (config.heads % config.kv_heads != 0) {
    model.fail("kv_heads",
               fmt::format("{} heads cannot share {} key–value heads evenly", config.heads, config.kv_heads),
               fmt::format("a divisor of {}", config.heads));
  }
  if (!model.has("head_dim") && config.hidden % config.heads != 0) {
    model.fail("heads", fmt::format("hidden size {} is not divisible by {} heads", config.hidden, config.heads),
               "a divisor of hidden, or head_dim");
  }
}

/// What only a mixture of experts has.
void read_experts(const MappingReader& model, TransformerConfig& config) {
  if (config.experts == 1) {
    model.refuse({"shared_experts", "dense_layers", "dense_ffn_hidden", "expert_imbalance", "expert_capacity"},
                 "the model has no experts", "experts: 8, say");
  }
  config.dense_layers = model.integer_or("dense_layers", 0, {0, config.layers});
  if (config.dense_layers > 0) {
    config.dense_ffn_hidden = model["dense_ffn_hidden"].integer({1, largest_transformer_dimension});
  }
  if (config.expert_imbalance < 1.0) model.fail("expert_imbalance", "the busiest below the mean", "1 or more");
}

/// Encoder and decoder are as wide and deep as each other unless the model says otherwise.
void read_stacks(const MappingReader& model, TransformerConfig& config) {
  if (!model.has("decoder_layers")) config.decoder_layers = config.layers;
  if (!model.has("decoder_sequence")) config.decoder_sequence = config.sequence;
  model.refuse({"layer_pattern", "kv_lora_rank", "mtp_layers", "dense_layers"}, "not known to encoder–decoders",
               "leave the key out, or family: llama");
}

}  // namespace

TransformerConfig read_transformer(const Field& field, TransformerFamily family) {
  const bool vit = family == TransformerFamily::vit;
  const bool two_stacks = family == TransformerFamily::t5;
  const MappingReader model = vit ? field.mapping(keys::model, keys::transformer, keys::images)
                              : two_stacks
                                  ? field.mapping(keys::model, keys::transformer, keys::language, keys::encoder_decoder)
                                  : field.mapping(keys::model, keys::transformer, keys::language);
  const FamilyDefaults& defaults = family_defaults[static_cast<std::size_t>(family)];
  TransformerConfig config;
  config.family = family;
  config.gated_ffn = defaults.gated_ffn;
  config.tied_embeddings = defaults.tied_embeddings;
  config.biases = defaults.biases;
  if (vit) config.classes = usual_classes;
  model.fill(config);
  if (!model.has("kv_heads")) config.kv_heads = config.heads;
  if (!model.has("head_dim")) config.head_dim = config.hidden / config.heads;
  check_heads(model, config);
  model.fail_if(model.has("layer_norm") && family != TransformerFamily::llama && !two_stacks, "layer_norm",
                "the family's norms subtract the mean", "leave the key out, or family: llama");
  if (!model.has("ffn_hidden")) config.ffn_hidden = default_ffn_hidden(config.hidden, config.gated_ffn);
  if (vit) {
    read_vit_shape(model, config);
    return config;
  }
  if (config.experts_per_token > config.experts) {
    model.fail("experts_per_token",
               fmt::format("{} experts per token, but there are {}", config.experts_per_token, config.experts),
               fmt::format("at most {}", config.experts));
  }
  if (two_stacks) read_stacks(model, config);
  read_experts(model, config);
  read_attention_kind(model, config);
  read_layer_kinds(model, config);
  return config;
}

}  // namespace foretrain
