// Models: transformers, networks of layers, and models of several parts.
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/model_config.hpp"

namespace foretrain::keys {

namespace {

constexpr std::string_view family_words[] = {"gpt", "bert", "mpt", "llama",          "vit",
                                             "t5",  "mlp",  "cnn", "vision_language"};
constexpr Key model_keys[] = {
    {"kind", text, "", "What a file describes: model."},
    {"name", text, "the family", "What results call the model."},
    {"description", text, "", "A line about the model for people who list models."},
    {"sources", by_name(mapping(source)), "", "Where the figures come from: default, or by key."},
    {"published_batch", text, "",
     "What a step of its published training took: 4 M tokens, 512 sequences. `foretrain init` begins with it."},
    {"family", words(family_words), "needed", "What sort of model it is, and what holds for keys that are left out."},
};
constexpr Variant model_variants[] = {{"gpt bert mpt llama vit t5", &transformer},
                                      {"gpt bert mpt llama t5", &language},
                                      {"t5", &encoder_decoder},
                                      {"vit", &images},
                                      {"mlp cnn", &network_model},
                                      {"vision_language", &vision_language}};

using Transformer = TransformerConfig;
constexpr IntegerRange any_width{1, 100'000'000}, latent_width{1, 1'000'000}, any_heads{1, 1'000'000};
constexpr Key transformer_keys[] = {
    needed<&Transformer::layers>("How many layers the model has.", {.range = {1, 10'000}}),
    needed<&Transformer::hidden>("Width of the residual stream.", {.range = any_width}),
    needed<&Transformer::heads>("Attention heads of a layer.", {.range = any_heads}),
    member<&Transformer::kv_heads>("Heads of keys and values, each shared by several (grouped-query attention).",
                                   {.usual = "heads", .range = any_heads}),
    member<&Transformer::head_dim>("Width of a head.", {.usual = "hidden / heads", .range = any_heads}),
    member<&Transformer::ffn_hidden>("Width of the feed-forward part; of an expert, where there are some.",
                                     {.usual = "4 x hidden; gated 8/3 x hidden", .range = any_width}),
    member<&Transformer::gated_ffn>("Whether the feed-forward part has a gate (SwiGLU).", {.usual = "the family's"}),
    member<&Transformer::biases>("Whether linear layers and norms have biases.", {.usual = "the family's"}),
    member<&Transformer::layer_norm>("Whether norms subtract the mean (LayerNorm).",
                                     {.usual = "false for llama and t5", .together = "Family llama or t5."}),
};

constexpr Key encoder_decoder_keys[] = {
    member<&Transformer::decoder_layers>("Layers of the decoder; `layers` are the encoder's.",
                                         {.usual = "layers", .range = {1, 10'000}}),
    member<&Transformer::decoder_sequence>("Tokens that the decoder predicts; `sequence` are the encoder's.",
                                           {.usual = "sequence", .range = any_width}),
};

constexpr std::string_view with_pattern = "With layer_pattern.";
constexpr std::string_view attention_words[] = {"full", "sliding", "mla"};
constexpr Key language_keys[] = {
    needed<&Transformer::vocabulary>("Words of the vocabulary.", {.range = any_width}),
    needed<&Transformer::sequence>("Tokens of a sequence.", {.range = any_width}),
    member<&Transformer::tied_embeddings>("Whether the output layer is the table of embeddings.",
                                          {.usual = "the family's"}),
    member<&Transformer::experts>("Experts of a layer (mixture of experts).", {.range = {1, 100'000}}),
    member<&Transformer::experts_per_token>("Experts to which a token goes.", {.range = {1, 100'000}}),
    member<&Transformer::shared_experts>("Experts to which every token goes, beside the others.",
                                         {.together = "With experts.", .range = {0, 1000}}),
    {"dense_layers", whole, "0", "Layers at the beginning that have no experts.", "With dense_ffn_hidden."},
    {"dense_ffn_hidden", whole, "needed with dense_layers", "Width of the feed-forward part of those layers."},
    member<&Transformer::expert_imbalance>("Tokens of the busiest rank's experts over the mean.",
                                           {.together = "With experts."}),
    member<&Transformer::expert_capacity>("Tokens that an expert takes over the mean; the rest are dropped.",
                                          {.usual = "all tokens", .together = "With experts.", .zero = Zero::refused}),
    {"attention_kind", words(attention_words), "by the keys below",
     "Whether a token attends to all others, to a window, or through latent vectors."},
    {"q_lora_rank", whole, "0: none", "Numbers of a token from which queries are made.", "With kv_lora_rank."},
    {"kv_lora_rank", whole, "0: none", "Numbers of a token from which keys and values are made (latent attention)."},
    {"rope_head_dim", whole, "0", "Width of the rotated part that all heads share.", "With kv_lora_rank."},
    {"v_head_dim", whole, "head_dim", "Width of a head's values.", "With kv_lora_rank."},
    {"window", whole, "all tokens", "Tokens that a token attends to, itself included (sliding attention)."},
    {"full_attention_every", whole, "none", "Of so many layers the last attends to all tokens.", "With window."},
    member<&Transformer::qk_norm>("Whether queries and keys are normed head by head."),
    member<&Transformer::attention_sinks>("Whether each head has a learned score beside those of the keys."),
    member<&Transformer::post_norms>("Whether a second norm stands behind each half of a block."),
    member<&Transformer::mtp_layers>("Layers that predict further tokens.", {.range = {0, 100}}),
    {"layer_pattern", text, "blocks alone",
     "A letter for each layer: M (Mamba-2), * (attention), - (feed-forward), E (experts)."},
    {"mamba_heads", whole, "needed with M", "Heads of a Mamba-2 layer.", "With layer_pattern."},
    member<&MambaConfig::head_dim>("Width of such a head.",
                                   {.name = "mamba_head_dim", .together = with_pattern, .range = latent_width}),
    member<&MambaConfig::state>("Numbers of state of each of its channels.",
                                {.name = "mamba_state", .together = with_pattern, .range = latent_width}),
    member<&MambaConfig::groups>("Groups of heads that share inputs of the state.",
                                 {.name = "mamba_groups", .together = with_pattern, .range = latent_width}),
    member<&MambaConfig::kernel>("Width of its convolution.",
                                 {.name = "mamba_kernel", .together = with_pattern, .range = {1, 1000}}),
    member<&MambaConfig::chunk>("Tokens that are scanned at a time.",
                                {.name = "mamba_chunk", .together = with_pattern, .range = latent_width}),
    member<&MambaConfig::step_rank>(
        "Numbers from which steps are made: layers are of Mamba-1, with as many heads as channels.",
        {.name = "mamba_step_rank", .usual = "0: Mamba-2", .together = with_pattern, .range = {0, 1'000'000}}),
};

constexpr Key images_keys[] = {
    needed<&Transformer::image_size>("Pixels of an image's side.", {.range = {1, 100'000}}),
    needed<&Transformer::patch_size>("Pixels of a patch's side: a divisor of image_size.", {.range = {1, 100'000}}),
    member<&Transformer::classes>("Classes that images are put into.", {.usual = "1000", .range = any_width}),
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
    member<&ProjectorConfig::layers>("Linear layers, with GELU between them.", {.range = {1, 100}}),
    member<&ProjectorConfig::hidden>("Width between them.", {.usual = "the language model's", .range = any_width}),
    member<&ProjectorConfig::merge>("Patches of a side that are joined into one token.", {.range = {1, 1000}}),
    member<&ProjectorConfig::averaged>("Whether they are joined by their mean, not one behind the other."),
    member<&ProjectorConfig::inner_layers>(
        "Inner layers of the encoder that have such a projector as well (DeepStack).", {.range = {0, 1000}}),
};
constexpr Key resampler_keys[] = {
    needed<&ProjectorConfig::queries>("Learned queries: as many tokens.", {.range = {1, 100'000}}),
    member<&ProjectorConfig::layers>("Blocks.", {.usual = "1", .range = {1, 1000}}),
    member<&ProjectorConfig::hidden>("Width of the blocks.", {.usual = "the language model's", .range = any_width}),
    member<&ProjectorConfig::heads>("Attention heads of a block.",
                                    {.usual = "the language model's", .range = any_heads}),
    member<&ProjectorConfig::ffn_hidden>("Width of the feed-forward part of a block.",
                                         {.usual = "0: none", .range = {0, 100'000'000}}),
    member<&ProjectorConfig::self_attention>("Whether queries attend to each other first."),
};

}  // namespace

constinit const Mapping model = {"model", model_keys, "family", model_variants};
constinit const Mapping transformer = {"transformer", transformer_keys};
constinit const Mapping language = {"language model", language_keys};
constinit const Mapping encoder_decoder = {"encoder–decoder", encoder_decoder_keys};
constinit const Mapping images = {"model of images", images_keys};
constinit const Mapping network_model = {"network of layers", network_model_keys};
constinit const Mapping vision_language = {"vision–language model", vision_language_keys};
constinit const Mapping projector = {"projector", projector_keys, "kind", projector_variants};
constinit const Mapping mlp_projector = {"projector of linear layers", mlp_projector_keys};
constinit const Mapping resampler = {"resampler", resampler_keys};

}  // namespace foretrain::keys
