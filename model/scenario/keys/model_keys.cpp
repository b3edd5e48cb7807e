// Models: transformers, networks of layers, and models of several parts.
#include "model/scenario/keys/keys.hpp"
#include "model/workload/model_config.hpp"

namespace foretrain::keys {

namespace {

constexpr std::string_view family_words[] = {"gpt", "bert", "mpt", "llama", "vit", "mlp", "cnn", "vision_language"};
constexpr Key model_keys[] = {
    {"kind", text, "", "What a file describes: model."},
    {"name", text, "the family", "What results call the model."},
    {"description", text, "", "A line about the model for people who list models."},
    {"sources", by_name(mapping(source)), "", "Where the figures come from."},
    {"family", words(family_words), "needed", "What sort of model it is, and what holds for keys that are left out."},
};
constexpr Variant model_variants[] = {{"gpt bert mpt llama vit", &transformer},
                                      {"gpt bert mpt llama", &language},
                                      {"vit", &images},
                                      {"mlp cnn", &network_model},
                                      {"vision_language", &vision_language}};

constexpr Key transformer_keys[] = {
    {"layers", whole, "needed", "How many layers the model has."},
    {"hidden", whole, "needed", "Width of the residual stream."},
    {"heads", whole, "needed", "Attention heads of a layer."},
    {"kv_heads", whole, "heads", "Heads of keys and values, each shared by several (grouped-query attention)."},
    {"head_dim", whole, "hidden / heads", "Width of a head."},
    {"ffn_hidden", whole, "4 x hidden; gated 8/3 x hidden",
     "Width of the feed-forward part; of an expert, where there are some."},
    {"gated_ffn", flag, "the family's", "Whether the feed-forward part has a gate (SwiGLU)."},
    {"biases", flag, "the family's", "Whether linear layers and norms have biases."},
};

constexpr std::string_view attention_words[] = {"full", "sliding", "mla"};
constexpr Key language_keys[] = {
    {"vocabulary", whole, "needed", "Words of the vocabulary."},
    {"sequence", whole, "needed", "Tokens of a sequence."},
    {"tied_embeddings", flag, "the family's", "Whether the output layer is the table of embeddings."},
    {"experts", whole, "1", "Experts of a layer (mixture of experts)."},
    {"experts_per_token", whole, "1", "Experts to which a token goes."},
    {"shared_experts", whole, "0", "Experts to which every token goes, beside the others.", "With experts."},
    {"dense_layers", whole, "0", "Layers at the beginning that have no experts.", "With dense_ffn_hidden."},
    {"dense_ffn_hidden", whole, "needed with dense_layers", "Width of the feed-forward part of those layers."},
    {"expert_imbalance", number, "1", "Tokens of the busiest rank's experts over the mean.", "With experts."},
    {"expert_capacity", number, "all tokens", "Tokens that an expert takes over the mean; the rest are dropped.",
     "With experts."},
    {"attention_kind", words(attention_words), "by the keys below",
     "Whether a token attends to all others, to a window, or through latent vectors."},
    {"q_lora_rank", whole, "0: none", "Numbers of a token from which queries are made.", "With kv_lora_rank."},
    {"kv_lora_rank", whole, "0: none", "Numbers of a token from which keys and values are made (latent attention)."},
    {"rope_head_dim", whole, "0", "Width of the rotated part that all heads share.", "With kv_lora_rank."},
    {"v_head_dim", whole, "head_dim", "Width of a head's values.", "With kv_lora_rank."},
    {"window", whole, "all tokens", "Tokens that a token attends to, itself included (sliding attention)."},
    {"full_attention_every", whole, "none", "Of so many layers the last attends to all tokens.", "With window."},
    {"qk_norm", flag, "false", "Whether queries and keys are normed head by head."},
    {"attention_sinks", flag, "false", "Whether each head has a learned score beside those of the keys."},
    {"post_norms", flag, "false", "Whether a second norm stands behind each half of a block."},
    {"mtp_layers", whole, "0", "Layers that predict further tokens."},
    {"layer_pattern", text, "blocks alone",
     "A letter for each layer: M (Mamba-2), * (attention), - (feed-forward), E (experts)."},
    {"mamba_heads", whole, "needed with M", "Heads of a Mamba-2 layer.", "With layer_pattern."},
    {"mamba_head_dim", whole, "64", "Width of such a head.", "With layer_pattern."},
    {"mamba_state", whole, "128", "Numbers of state of each of its channels.", "With layer_pattern."},
    {"mamba_groups", whole, "8", "Groups of heads that share inputs of the state.", "With layer_pattern."},
    {"mamba_kernel", whole, "4", "Width of its convolution.", "With layer_pattern."},
    {"mamba_chunk", whole, "256", "Tokens that are scanned at a time.", "With layer_pattern."},
};

constexpr Key images_keys[] = {
    {"image_size", whole, "needed", "Pixels of an image's side."},
    {"patch_size", whole, "needed", "Pixels of a patch's side: a divisor of image_size."},
    {"classes", whole, "1000", "Classes that images are put into."},
};

constexpr Key network_model_keys[] = {
    {"input", list(whole), "needed", "[channels, height, width] or [features]."},
    {"layers", list(mapping(layer) | text), "needed",
     "The layers in order, such as relu or { conv: { out: 64, kernel: 3 } }."},
};

constexpr Key vision_language_keys[] = {
    {"vision", named(Catalogue::model, model), "needed", "The image encoder: a model of family vit."},
    {"projector", mapping(projector), "needed", "What makes tokens of the language model from patches."},
    {"language", named(Catalogue::model, model), "needed", "The language model."},
};

constexpr Key projector_keys[] = {
    {"kind", word<ProjectorConfig::Kind>, "mlp", "Linear layers, or learned queries that attend to the patches."},
};
constexpr Variant projector_variants[] = {{"mlp", &mlp_projector}, {"resampler", &resampler}};
constexpr Key mlp_projector_keys[] = {
    {"layers", whole, "2", "Linear layers, with GELU between them."},
    {"hidden", whole, "the language model's", "Width between them."},
    {"merge", whole, "1", "Patches of a side that are joined into one token."},
};
constexpr Key resampler_keys[] = {
    {"queries", whole, "needed", "Learned queries: as many tokens."},
    {"layers", whole, "1", "Blocks."},
    {"hidden", whole, "the language model's", "Width of the blocks."},
    {"heads", whole, "the language model's", "Attention heads of a block."},
    {"ffn_hidden", whole, "0: none", "Width of the feed-forward part of a block."},
    {"self_attention", flag, "false", "Whether queries attend to each other first."},
};

}  // namespace

constinit const Mapping model = {"model", model_keys, "family", model_variants};
constinit const Mapping transformer = {"transformer", transformer_keys};
constinit const Mapping language = {"language model", language_keys};
constinit const Mapping images = {"model of images", images_keys};
constinit const Mapping network_model = {"network of layers", network_model_keys};
constinit const Mapping vision_language = {"vision–language model", vision_language_keys};
constinit const Mapping projector = {"projector", projector_keys, "kind", projector_variants};
constinit const Mapping mlp_projector = {"projector of linear layers", mlp_projector_keys};
constinit const Mapping resampler = {"resampler", resampler_keys};

}  // namespace foretrain::keys
