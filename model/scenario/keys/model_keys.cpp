// Models: transformers, networks of layers, and models of several parts.
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/keys/member.hpp"
#include "model/workload/model_config.hpp"

namespace foretrain::keys {

namespace {

using Transformer = TransformerConfig;
constexpr IntegerRange latent_width{1, 1'000'000};
constexpr Key width{.range = {1, 100'000'000}}, any_heads{.range = latent_width}, some_layers{.range = {1, 10'000}};

constexpr Key of_mamba{.together = "With layer_pattern.", .range = latent_width};
constexpr Key with_experts{.together = "With experts."};
constexpr Key language_keys[] = {
    needed<&Transformer::vocabulary>("Vocabulary size in tokens.", width),
    needed<&Transformer::sequence>("Tokens of a sequence.", width),
    member<&Transformer::tied_embeddings>("Tied embedding and output layer.", {.usual = "the family's"}),
    member<&Transformer::experts>("Experts of a layer (mixture of experts).", {.range = {1, 100'000}}),
    member<&Transformer::experts_per_token>("Experts per token (top-k).", {.range = {1, 100'000}}),
    member<&Transformer::shared_experts>("Shared experts, used by every token.", with_experts.in({0, 1000})),
    {"dense_layers", whole, "0", "Layers at the beginning that have no experts.", "With dense_ffn_hidden."},
    Key{"dense_ffn_hidden", whole, "needed with dense_layers", "Width of the feed-forward part of those layers."}.in(
        width.range),
    member<&Transformer::expert_imbalance>("Tokens of the busiest rank's experts over the mean.", with_experts),
    member<&Transformer::expert_capacity>("Capacity factor: tokens per expert over the mean; others are dropped.",
                                          with_experts.or_else("all tokens").with(Zero::refused)),
    {"attention_kind", one_of<"full", "sliding", "mla">, "by the keys below",
     "Attention: full, sliding window, or multi-head latent attention (MLA)."},
    Key{"q_lora_rank", whole, "0: none", "Rank of the query projection (latent attention).", "With kv_lora_rank."}.in(
        latent_width),
    Key{"kv_lora_rank", whole, "0: none", "Rank of the key-value projection (latent attention)."}.in(latent_width),
    Key{"rope_head_dim", whole, "0", "Width of the rotated part that all heads share.", "With kv_lora_rank."}.in(
        {0, 1'000'000}),
    Key{"v_head_dim", whole, "head_dim", "Width of a head's values.", "With kv_lora_rank."}.in(latent_width),
    Key{"window", whole, "all tokens", "Tokens that a token attends to, itself included (sliding attention)."}.in(
        {1, 1'000'000'000}),
    Key{"full_attention_every", whole, "none", "One full-attention layer per this many layers.", "With window."}.in(
        {1, 100'000}),
    member<&Transformer::qk_norm>("Norm of queries and keys per head (QK norm)."),
    member<&Transformer::attention_sinks>("Attention sink: a learned score per head."),
    member<&Transformer::post_norms>("Second norm after attention and feed-forward."),
    member<&Transformer::mtp_layers>("Layers that predict further tokens.", {.range = {0, 100}}),
    {"layer_pattern", text, "blocks alone",
     "A letter for each layer: M (Mamba-2), * (attention), - (feed-forward), E (experts)."},
    Key{"mamba_heads", whole, "needed with M", "Heads of a Mamba-2 layer.", "With layer_pattern."}.in(latent_width),
    member<&MambaConfig::head_dim>("Width of a Mamba head.", of_mamba.as("mamba_head_dim")),
    member<&MambaConfig::state>("State size per channel.", of_mamba.as("mamba_state")),
    member<&MambaConfig::groups>("Groups of heads that share inputs of the state.", of_mamba.as("mamba_groups")),
    member<&MambaConfig::kernel>("Width of its convolution.", of_mamba.as("mamba_kernel").in({1, 1000})),
    member<&MambaConfig::chunk>("Tokens per scan chunk.", of_mamba.as("mamba_chunk")),
    member<&MambaConfig::step_rank>("Rank of the step size (Mamba-1: as many heads as channels).",
                                    of_mamba.as("mamba_step_rank").or_else("0: Mamba-2").in({0, 1'000'000})),
};

constexpr Key transformer_keys[] = {
    needed<&Transformer::layers>("Number of layers.", some_layers),
    needed<&Transformer::hidden>("Width of the residual stream.", width),
    needed<&Transformer::heads>("Attention heads of a layer.", any_heads),
    member<&Transformer::kv_heads>("Heads of keys and values, each shared by several (grouped-query attention).",
                                   any_heads.or_else("heads")),
    member<&Transformer::head_dim>("Width of a head.", any_heads.or_else("hidden / heads")),
    member<&Transformer::ffn_hidden>("Feed-forward width; with experts, that of one expert.",
                                     width.or_else("4 x hidden; gated 8/3 x hidden")),
    member<&Transformer::gated_ffn>("Gated feed-forward layer (SwiGLU).", {.usual = "the family's"}),
    member<&Transformer::biases>("Biases in linear layers and norms.", {.usual = "the family's"}),
    member<&Transformer::layer_norm>("LayerNorm instead of RMSNorm.",
                                     {.usual = "false for llama and t5", .together = "Family llama or t5."}),
};

constexpr Key images_keys[] = {
    needed<&Transformer::image_size>("Pixels of an image's side.", {.range = {1, 100'000}}),
    needed<&Transformer::patch_size>("Pixels of a patch's side: a divisor of image_size.", {.range = {1, 100'000}}),
    member<&Transformer::classes>("Number of image classes.", width.or_else("1000")),
};

constexpr Key network_model_keys[] = {
    {"input", list(whole), "needed", "[channels, height, width] or [features]."},
    {"layers", list(mapping(layer) | text), "needed",
     "The layers in order, such as relu or { conv: { out: 64, kernel: 3 } }."},
};

constexpr Key mlp_projector_keys[] = {
    member<&ProjectorConfig::layers>("Linear layers, with GELU between them.", {.range = {1, 100}}),
    member<&ProjectorConfig::hidden>("Width between them.", width.or_else("the language model's")),
    member<&ProjectorConfig::merge>("Patches of a side that are joined into one token.", {.range = {1, 1000}}),
    member<&ProjectorConfig::averaged>("Merge patches by their mean instead of concatenation."),
    member<&ProjectorConfig::inner_layers>("Inner encoder layers with their own projector (DeepStack).",
                                           {.range = {0, 1000}}),
};
constexpr Key resampler_keys[] = {
    needed<&ProjectorConfig::queries>("Learned queries: as many tokens.", {.range = {1, 100'000}}),
    member<&ProjectorConfig::layers>("Blocks.", {.usual = "1", .range = {1, 1000}}),
    member<&ProjectorConfig::hidden>("Width of the blocks.", width.or_else("the language model's")),
    member<&ProjectorConfig::heads>("Attention heads of a block.", any_heads.or_else("the language model's")),
    member<&ProjectorConfig::ffn_hidden>("Width of the feed-forward part of a block.",
                                         {.usual = "0: none", .range = {0, 100'000'000}}),
    member<&ProjectorConfig::self_attention>("Self-attention among queries."),
};
constexpr Key projector_keys[] = {
    {"kind", word<ProjectorConfig::Kind>, "mlp", "Linear layers, or learned queries that attend to the patches."},
};
constexpr Variant projector_variants[] = {{"mlp", &mapping_with<mlp_projector_keys, "projector of linear layers">},
                                          {"resampler", &mapping_with<resampler_keys, "resampler">}};
constexpr Mapping projector = {"projector", projector_keys, "kind", projector_variants};

constexpr Key vision_language_keys[] = {
    {"vision", named(Catalogue::model, model), "needed", "The image encoder: a model of family vit."},
    {"projector", mapping(projector), "needed", "Projector from patches to language tokens."},
    {"language", named(Catalogue::model, model), "needed", "The language model."},
};

constexpr Key model_keys[] = {
    {"kind", text, "", "Kind of file: model."},
    {"name", text, "the family", "Name of the model in results."},
    {"description", text, "", "One-line description for `foretrain models list`."},
    {"sources", by_name(mapping(source)), "", "Sources of the values: default, or by key."},
    {"published_batch", text, "",
     "Published global batch, such as 4 M tokens or 512 sequences; default of `foretrain init`."},
    {"family", one_of<"gpt", "bert", "mpt", "llama", "vit", "t5", "mlp", "cnn", "vision_language">, "needed",
     "Model family, which sets the defaults of other keys."},
};
constexpr Variant model_variants[] = {
    {"gpt bert mpt llama vit t5", &transformer},
    {"gpt bert mpt llama t5", &language},
    {"t5", &encoder_decoder},
    {"vit", &mapping_with<images_keys, "model of images">},
    {"mlp cnn", &mapping_with<network_model_keys, "network of layers">},
    {"vision_language", &mapping_with<vision_language_keys, "vision–language model">}};

constexpr Key encoder_decoder_keys[] = {
    member<&Transformer::decoder_layers>("Layers of the decoder; `layers` are the encoder's.",
                                         some_layers.or_else("layers")),
    member<&Transformer::decoder_sequence>("Tokens that the decoder predicts; `sequence` are the encoder's.",
                                           width.or_else("sequence")),
};

constexpr Value layers_in_order = list(mapping(layer) | text);
constexpr IntegerRange layer_width{1, 100'000'000}, layer_window{1, 10'000}, layer_pad{0, 10'000};
constexpr Value one_or_two = whole | list(whole);
constexpr Key has_bias = member<&NetworkLayer::bias>("Bias.");

constexpr Key convolution_layer_keys[] = {
    needed<&NetworkLayer::out>("Filters.", {.range = layer_width}),
    Key{"kernel", one_or_two, "needed", "Side of a filter, or [height, width]."}.in(layer_window),
    member<&NetworkLayer::stride>("Pixels from one window to the next.", {.range = layer_window}),
    Key{"pad", one_or_two, "0", "Pixels of zeros around the input, or [height, width]."}.in(layer_pad),
    member<&NetworkLayer::groups>("Channel groups of a grouped convolution.", {.range = layer_width}),
    has_bias,
};

constexpr Key linear_layer_keys[] = {
    needed<&NetworkLayer::out>("Features of the result.", {.range = layer_width}),
    has_bias,
};

constexpr Key pool_layer_keys[] = {
    Key{"kernel", one_or_two, "needed", "Side of a window, or [height, width]."}.in(layer_window),
    member<&NetworkLayer::stride>("Pixels from one window to the next.", {.usual = "kernel", .range = layer_window}),
    Key{"pad", one_or_two, "0", "Pixels around the input, or [height, width]."}.in(layer_pad),
};

constexpr Key residual_keys[] = {
    {"body", layers_in_order, "needed", "The layers."},
    {"shortcut", layers_in_order, "nothing", "Layers of the shortcut."},
};

constexpr Key repeated_keys[] = {
    needed<&NetworkLayer::times>("How often.", {.range = {1, 100'000}}),
    {"body", layers_in_order, "needed", "The layers."},
};

// Words without parameters (relu, flatten, …) are written without a mapping.
constexpr Key layer_keys[] = {
    {"conv", mapping_of<convolution_layer_keys, "convolutional layer">, "", "A convolution."},
    {"linear", mapping_of<linear_layer_keys, "linear layer">, "", "A linear layer."},
    {"max_pool", mapping_of<pool_layer_keys, "pooling layer">, "", "The largest value of each window."},
    {"average_pool", mapping_of<pool_layer_keys, "pooling layer">, "", "The mean of each window."},
    {"dropout", number, "", "Share of values that is dropped."},
    {"residual", mapping_of<residual_keys, "residual">, "", "Layers with a residual connection."},
    {"branches", list_of_lists(mapping(layer) | text), "", "Parallel branches, whose results are concatenated."},
    {"repeat", mapping_of<repeated_keys, "repetition">, "", "Layers several times over."},
};

}  // namespace

constinit const Mapping model = {"model", model_keys, "family", model_variants};
constinit const Mapping transformer = {"transformer", transformer_keys};
constinit const Mapping language = {"language model", language_keys};
constinit const Mapping encoder_decoder = {"encoder–decoder", encoder_decoder_keys};
constinit const Mapping layer = {"layer", layer_keys};

}  // namespace foretrain::keys
