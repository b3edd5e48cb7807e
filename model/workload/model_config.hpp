// The scenario's description of a model, before shapes are computed.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/words.hpp"

namespace foretrain {

enum class TransformerFamily { gpt, bert, mpt, llama, vit, t5 };

/// Kinds of layers in a model, with norm and residual addition: a block of attention and
/// feed-forward half, or, in hybrid models, a half alone or a Mamba-2 layer. Letters of key layer_pattern, as
/// Nemotron-H writes them (hybrid_override_pattern): M, *, -, E.
enum class LayerKind { block, mamba, attention, feed_forward, experts };

/// A Mamba-2 layer (Dao and Gu 2024, arXiv 2405.21060): heads of head_dim elements, each with a state of head_dim x
/// state numbers; groups of heads share what writes into and reads from their states.
struct MambaConfig {
  std::int64_t heads = 0, head_dim = 64, state = 128, groups = 8;
  std::int64_t kernel = 4;   ///< taps of the causal convolution
  std::int64_t chunk = 256;  ///< tokens that are multiplied at once
  /// Mamba-1 (Gu and Dao 2023, arXiv 2312.00752): heads of one element, each number of a state with a rate of its own.
  /// Steps, and what writes and reads the states, come out of the convolved inputs, steps through so many numbers.
  std::int64_t step_rank = 0;
  bool operator==(const MambaConfig&) const = default;
  [[nodiscard]] std::int64_t inner() const { return heads * head_dim; }
  [[nodiscard]] bool selective() const { return step_rank > 0; }
  [[nodiscard]] std::int64_t convolved() const { return inner() + (selective() ? 0 : 2 * groups * state); }
};

/// Defaults are those of the family: 4·hidden feed-forward (llama: gated), as many key–value heads as heads, learned
/// positions for gpt and bert, ALiBi for mpt, rotary for llama, a learned bias by distance for t5. Embeddings tied
/// except in llama. t5: an encoder of `layers` layers over `sequence` tokens, and a decoder whose blocks attend to
/// these as well.
struct TransformerConfig {
  TransformerFamily family = TransformerFamily::gpt;
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t ffn_hidden = 0, vocabulary = 0, sequence = 0;
  bool gated_ffn = false;
  bool tied_embeddings = true;
  bool biases = true;       ///< linear layers and norms have bias terms
  bool layer_norm = false;  ///< families llama and t5: norms subtract the mean, as in all others (LayerNorm)
  std::int64_t decoder_layers = 0, decoder_sequence = 0;  ///< t5, of its second stack
  std::int64_t source = 0;  ///< of a decoder stack alone: tokens of the encoder that a sample's tokens attend to
  std::int64_t experts = 1, experts_per_token = 1;
  std::int64_t shared_experts = 0;  ///< beside the routed ones, for every token, each as wide as a routed one
  std::int64_t dense_layers = 0, dense_ffn_hidden = 0;  ///< the first layers, which have no experts
  double expert_imbalance = 1.0;                        ///< tokens of the busiest rank's experts over the mean
  double expert_capacity = 0.0;  ///< tokens that an expert takes over the mean, the rest dropped; 0: all
  /// Multi-head latent attention (DeepSeek-AI 2024, arXiv 2405.04434, section 2.1): keys and values come out of
  /// kv_lora_rank numbers a token, of which heads * (head_dim + v_head_dim) are made, beside rope_head_dim numbers that
  /// all heads share. q_lora_rank 0: queries straight from the hidden state. kv_lora_rank 0: no latent attention.
  std::int64_t q_lora_rank = 0, kv_lora_rank = 0, rope_head_dim = 0, v_head_dim = 0;
  /// Keys that a query sees, itself included (sliding attention); 0: all. Every so many layers, the last of as many,
  /// attend to all keys; 0: none does.
  std::int64_t window = 0, full_attention_every = 0;
  bool qk_norm = false;            ///< queries and keys are normed head by head (Qwen3, Gemma 3)
  bool attention_sinks = false;    ///< each head has a learned score beside those of the keys (gpt-oss)
  bool post_norms = false;         ///< a second norm behind each half of a block (Gemma 2 and 3)
  std::int64_t mtp_layers = 0;     ///< predict further tokens (DeepSeek-AI 2024, arXiv 2412.19437, section 2.2)
  std::vector<LayerKind> pattern;  ///< hybrid models: each layer's kind; empty: all are blocks
  MambaConfig mamba;
  std::int64_t image_size = 0, patch_size = 0, classes = 0;  ///< vit

  [[nodiscard]] bool latent() const { return kv_lora_rank > 0; }
  [[nodiscard]] bool has_rms_norm() const {
    return (family == TransformerFamily::llama || family == TransformerFamily::t5) && !layer_norm;
  }
  [[nodiscard]] std::int64_t all_layers() const { return layers + decoder_layers; }
  /// Each with `layers` layers over `sequence` tokens: encoder and decoder, or itself.
  [[nodiscard]] std::vector<TransformerConfig> stacks() const {
    if (decoder_layers == 0) return {*this};
    TransformerConfig encoder = *this, decoder = *this;
    encoder.decoder_layers = decoder.decoder_layers = 0;
    decoder.layers = decoder_layers;
    decoder.sequence = decoder_sequence;
    decoder.source = sequence;
    return {encoder, decoder};
  }
  /// Rows of the busiest experts over the mean; with a capacity all are filled up to it.
  [[nodiscard]] double expert_load() const { return expert_capacity > 0.0 ? expert_capacity : expert_imbalance; }
  [[nodiscard]] LayerKind kind_of(std::int64_t layer) const {
    return pattern.empty() ? LayerKind::block : pattern[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] bool attends_to_all(std::int64_t layer) const {
    return window == 0 || (full_attention_every > 0 && (layer + 1) % full_attention_every == 0);
  }
  /// Its layers that attend to all keys, alone.
  [[nodiscard]] TransformerConfig without_window() const {
    TransformerConfig full = *this;
    full.window = full.full_attention_every = 0;
    return full;
  }
  /// Its layers without experts, alone.
  [[nodiscard]] TransformerConfig without_experts() const {
    TransformerConfig dense = *this;
    dense.experts = dense.experts_per_token = 1;
    dense.shared_experts = dense.dense_layers = 0;
    dense.ffn_hidden = dense_ffn_hidden;
    return dense;
  }
};

/// One layer of a sequential network (families cnn and mlp); scenarios/models/resnet-50.yaml shows the syntax.
struct NetworkLayer {
  enum class Kind {
    convolution,
    linear,
    batch_norm,
    relu,
    sigmoid,
    gelu,
    max_pool,
    average_pool,
    global_average_pool,
    flatten,
    dropout,
    local_response_norm,
    residual,
    branches,
    repeat
  };
  Kind kind = Kind::relu;
  std::int64_t out = 0, kernel_h = 1, kernel_w = 1, stride = 1, pad_h = 0, pad_w = 0, groups = 1;
  bool bias = true;
  std::int64_t times = 1;                         ///< repeat
  std::vector<std::vector<NetworkLayer>> bodies;  ///< residual: body, shortcut; branches: each; repeat: one
  SourcePosition where;
};

template <>
constexpr std::string_view enumerator_word<NetworkLayer::Kind::convolution>() {
  return "conv";
}

/// Input [channels, height, width] (mlp: channels = features, 1 × 1), then the layers in order.
struct NetworkConfig {
  std::int64_t channels = 0, height = 1, width = 1;
  std::vector<NetworkLayer> layers;
};

/// From an image's patches to tokens of the language model.
struct ProjectorConfig {
  enum class Kind {
    mlp,  ///< linear layers with GELU between them; as many tokens as patches, or one for `merge` × `merge` of them
    resampler  ///< `queries` learned vectors attend to the patches (Perceiver resampler, Q-Former): as many tokens
  };
  Kind kind = Kind::mlp;
  std::int64_t layers = 2;  ///< mlp: linear layers; resampler: blocks
  std::int64_t hidden = 0;  ///< width between linear layers, or of the resampler
  std::int64_t merge = 1;   ///< mlp: patches a side that are joined into one input (pixel shuffle)
  std::int64_t queries = 0, heads = 0, ffn_hidden = 0;  ///< resampler; without a feed-forward half where it is 0
  bool self_attention = false;                          ///< resampler: queries attend to each other first (Q-Former)
  bool averaged = false;                                ///< mlp: patches are joined by their mean
  std::int64_t inner_layers = 0;  ///< mlp: of the encoder, from which as many projectors more read (DeepStack)
};

/// An image encoder (vit, without its classifier), a projector and a language model, into whose sequence the visual
/// tokens are inserted. `language.sequence` is the longest sequence.
struct VisionLanguageConfig {
  TransformerConfig vision;
  ProjectorConfig projector;
  TransformerConfig language;
};

struct ModelConfig {
  std::string name;  ///< preset name or family
  std::variant<TransformerConfig, NetworkConfig, VisionLanguageConfig> shape;

  [[nodiscard]] bool has_experts() const {
    const auto* transformer = std::get_if<TransformerConfig>(&shape);
    return transformer != nullptr && transformer->experts > 1;
  }
};

}  // namespace foretrain
