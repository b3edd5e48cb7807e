// Parts of transformer layers: linear layers, norms, residual additions, exchanges between tensor
// ranks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/base/number.hpp"
#include "model/workload/build.hpp"
#include "model/workload/plain_kernels.hpp"
#include "model/workload/quantisation.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain {

/// Says of which part of a layer, or in which role, the operators are that were added since it last did, or since it
/// was made.
class Marker {
 public:
  explicit Marker(Layer& layer) : layer_(layer), forward_(layer.forward.size()), backward_(layer.backward.size()) {}
  void mark(LayerPart part) {
    each([part](Operator& op) { op.part = part; });
  }
  void mark(OperatorRole role) {
    each([role](Operator& op) { op.role = role; });
  }

 private:
  template <typename Change>
  void each(Change change) {
    for (; forward_ < layer_.forward.size(); ++forward_) change(layer_.forward[forward_]);
    for (; backward_ < layer_.backward.size(); ++backward_) change(layer_.backward[backward_]);
  }

  Layer& layer_;
  std::size_t forward_, backward_;
};

/// Collects the operators of a layer, forward and backward; all sizes for one rank. Keeps references to its arguments.
class BlockBuilder {
 public:
  BlockBuilder(const TransformerConfig& config, const BuildOptions& options, bool weights = true)
      : config_(config),
        options_(options),
        weights_(weights),
        activations_(storage_precision(options.precision)),
        element_(bytes_per_element(activations_)),
        stream_(plain() && options.casts_weights ? bytes_per_element(Precision::fp32) : element_),
        batch_(options.pass ? options.pass->batch : options.micro_batch),
        sequence_(options.pass ? options.pass->length : tokens_of_sample(config)),
        tokens_((options.pass ? options.pass->tokens : options.micro_batch * sequence_) / options.context) {}

  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  /// Tokens that norms, dropout and residual additions of one rank see: divided under sequence parallelism.
  [[nodiscard]] double norm_tokens() const {
    return number(tokens_) / (options_.sequence_parallel ? options_.tensor : 1);
  }

  /// y[m,n] = x[m,k] · w: forward; its backward is a data gradient and, unless w is frozen, a weight gradient.
  /// `grouped`: of experts; `compiled`: by the compiler of its trainer, if there is one.
  void linear(Layer& layer, const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k,
              Precision precision, std::int64_t batch = 1, bool grouped = false, bool compiled = true) const {
    const Bytes weights = options_.casts_weights ? number(batch) * number(n) * number(k) * element_ : Bytes(0.0);
    const auto cast = [&](const char* what, double read, double written) {
      Streaming work{StreamingKind::elementwise, read * weights, written * weights, Flops(0.0), false};
      if (written > read && !options_.compiled) work.singles = weights / element_;
      return Operator{name + what, work, activations_, 1};
    };
    const double wide = bytes_per_element(Precision::fp32) / element_;
    // Libraries of fused kernels pad what is odd, a vocabulary above all (Megatron-LM, --make-vocab-size-divisible-by),
    // and so does a compiler (PyTorch, torch/_inductor/config.py: shape_padding).
    const bool padded = !plain() || (options_.compiled && compiled);
    const auto product = [&](const std::string& what, Matmul work) {
      work.grouped = grouped;
      work.padded = padded;
      return Operator{name + what, work, precision, 1};
    };
    if (options_.casts_weights) layer.forward.push_back(cast(" weight cast", wide, 1.0));
    layer.forward.push_back(product("", linear_forward(m, n, k, batch)));
    layer.backward.push_back(product(" data gradient", linear_data_gradient(m, n, k, batch)));
    if (!weights_) return;
    if (options_.casts_weights) layer.backward.push_back(cast(" gradient cast", 1.0, wide));
    layer.backward.push_back(product(" weight gradient", linear_weight_gradient(m, n, k, batch)));
  }

  /// A linear layer of a block. Formats shorter than 16 bits are cast to: the input unless the norm before wrote it so
  /// (`cast_input` = false), the result's gradient, and the weights, once a step. Attention, norms, embedding and
  /// logits stay in bf16. Frozen weights need no operands along the other side. Plain code scales fp8 by the largest
  /// number of the whole tensor at hand (torchao, float8, tensorwise dynamic scaling). It is sought before anything is
  /// cast, by a kernel of its own or, compiled, by the producer; so that no cast is part of what comes before it.
  void block_linear(Layer& layer, const std::string& name, std::int64_t m, std::int64_t n, std::int64_t k,
                    bool cast_input, std::int64_t batch = 1, bool grouped = false) const {
    if (quantised())
      dequantise(layer, name, number(batch) * number(n) * number(k), number(m) * number(k), number(m) * number(n));
    const bool wide = options_.recipe.experts_alone && !grouped;
    const Precision precision = wide ? activations_ : options_.precision;
    linear(layer, name, m, n, k, precision, batch, grouped);
    if (!casts_operands(precision)) return;
    const bool apart = plain() && precision == Precision::fp8;
    const auto cast = [&](Operand operand, const char* what, double elements) {
      const Quantisation q = quantisation(precision, options_.recipe.scaling, operand, weights_);
      const double all = number(batch) * elements;
      const Bytes sought = apart && q.kernels == 1 && !options_.compiled ? element_ * all : Bytes(0.0);
      return Operator{name + what,
                      Streaming{StreamingKind::elementwise, Bytes(q.read * all) + sought, Bytes(q.written * all),
                                Flops(0.0), !apart},
                      activations_, q.kernels + (sought > Bytes(0.0) ? 1 : 0)};
    };
    const auto before_last = [](std::vector<Operator>& pass, std::ptrdiff_t products, Operator op) {
      pass.insert(pass.end() - products, std::move(op));
    };
    const bool by_norm = quantisation(precision, options_.recipe.scaling, Operand::input, weights_).by_norm;
    if (cast_input || !by_norm) before_last(layer.forward, 1, cast(Operand::input, " cast", number(m) * number(k)));
    Operator weights = cast(Operand::weight, " weight quantisation", number(n) * number(k) / options_.passes_per_cast);
    if (weights.kernels > 0) before_last(layer.forward, 1, std::move(weights));
    before_last(layer.backward, weights_ ? 2 : 1, cast(Operand::gradient, " cast", number(m) * number(n)));
  }

  /// Frozen weights become 16-bit numbers before each product, in both passes (bitsandbytes, autograd/_functions.py:
  /// MatMul4Bit). 8-bit ones are multiplied as they are in the forward pass, by inputs that are cast row by row, and
  /// what comes out is scaled (MatMul8bitLt).
  void dequantise(Layer& layer, const std::string& name, double weights, double inputs, double outputs) const {
    const double stored = options_.parts.quantised.size().value(), e = element_.value();
    const auto pass = [&](const char* what, double read, double written, int kernels) {
      return Operator{name + what,
                      Streaming{StreamingKind::elementwise, Bytes(read), Bytes(written), Flops(0.0), false},
                      activations_, kernels};
    };
    const Operator whole = pass(" dequantisation", stored * weights, e * weights, 1);
    const bool int8 = options_.parts.quantised.weights == FrozenWeights::Format::int8;
    layer.forward.push_back(int8 ? pass(" cast and scaling", e * inputs + 4.0 * outputs, inputs + e * outputs, 2)
                                 : whole);
    layer.backward.push_back(whole);
  }
  [[nodiscard]] bool quantised() const { return !weights_ && options_.parts.quantised.any(); }

  /// A memory-bound kernel over `elements` numbers: forward and backward passes as (reads, writes) per element.
  void stream(Layer& layer, const std::string& name, StreamingKind kind, double elements, double forward_reads,
              double forward_writes, double backward_reads, double backward_writes, int backward_kernels = 1) const {
    layer.forward.push_back(streaming_operator(name, kind, elements, forward_reads, forward_writes, activations_));
    layer.backward.push_back(streaming_operator(name + " backward", kind, elements, backward_reads, backward_writes,
                                                activations_, backward_kernels));
  }

  /// `products`: linear layers that read its result.
  void norm(Layer& layer, const std::string& name, int products = 0) const {
    Marker added(layer);
    if (!fuses(Fusion::norm)) {
      const double elements = norm_tokens() * number(config_.hidden);
      append_streams(layer, name, config_.has_rms_norm() ? plain_rms_norm(stream_) : plain_layer_norm(stream_),
                     elements, options_);
      added.mark(OperatorRole::norm);
      if (stream_ > element_ && products > 0) {
        append_streams(layer, name, plain_input_casts(element_, products), elements, options_);
      }
    } else {
      norm_over(layer, name, norm_tokens() * number(config_.hidden));
    }
  }
  /// One kernel: forward it reads x, writes y. Backward it reads dy and x, writes dx; the scale's gradient is a second,
  /// smaller kernel that reads both again from cache or memory.
  void norm_over(Layer& layer, const std::string& name, double elements) const {
    Marker added(layer);
    stream(layer, name, StreamingKind::reduction, elements, 1, 1, weights_ ? 3 : 2, 1, weights_ ? 2 : 1);
    added.mark(OperatorRole::norm);
  }

  /// A bias added by a kernel of its own; its gradient sums over tokens.
  void separate_bias(Layer& layer, const std::string& name, double elements) const {
    if (!plain() || !config_.biases) return;
    append_streams(layer, name, plain_bias(element_), elements, options_);
    if (!weights_) layer.backward.pop_back();
  }

  /// bias + dropout + residual, in one kernel or three; the mask costs one byte an element.
  void residual(Layer& layer, const std::string& name) const {
    const double mask = has_dropout(config_.family) ? 1.0 / element_.value() : 0.0;
    const double elements = norm_tokens() * number(config_.hidden);
    if (!fuses(Fusion::bias_dropout_add)) {
      separate_bias(layer, name + " bias", elements);
      Marker added(layer);
      if (mask > 0.0) stream(layer, name + " dropout", StreamingKind::elementwise, elements, 1, 1 + mask, 1 + mask, 1);
      added.mark(OperatorRole::dropout);
      if (stream_ > element_) {
        append_streams(layer, name, plain_wide_residual(element_), elements, options_);
      } else {
        stream(layer, name, StreamingKind::elementwise, elements, 2, 1, 2, 1);
      }
    } else {
      stream(layer, name, StreamingKind::elementwise, elements, 2, 1 + mask, 1 + mask, 1);
    }
  }

  /// Collectives of tensor-parallel ranks around the two halves of a block: an all-reduce each, or with sequence
  /// parallelism an all-gather before and a reduce-scatter after (arXiv 2205.05198, section 4.2.2). In the backward
  /// pass an input that was not kept is gathered again for a weight gradient, beside the product of the data gradient
  /// (Megatron-Core, tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication; Transformer Engine,
  /// module/layernorm_linear.py). Narrow gathers cast to fp8 before (the same, gather of ln_out; module/base.py,
  /// grad_output_preprocess); sums stay in the activations' format.
  void tensor_collectives(Layer& layer, int halves) const {
    if (options_.tensor == 1) return;
    using enum CollectiveOperation;
    constexpr auto group = LayerCollective::Group::tensor;
    const Bytes size = element_ * (number(tokens_) * number(config_.hidden));
    const Bytes source = element_ * (number(source_tokens()) * number(config_.hidden));
    if (!options_.sequence_parallel) {
      layer.forward_collectives.push_back({all_reduce, group, size, halves});
      layer.backward_collectives.push_back({all_reduce, group, size, halves});
      if (source > Bytes(0.0)) layer.backward_collectives.push_back({all_reduce, group, source});
      return;
    }
    if (source > Bytes(0.0)) {  // keys and values need what other ranks have of the encoder's result
      layer.forward_collectives.push_back({all_gather, group, source});
      layer.backward_collectives.push_back({all_gather, group, source});
      layer.backward_collectives.push_back({reduce_scatter, group, source});
    }
    const bool casts = options_.precision == Precision::fp8 && !options_.recipe.experts_alone;
    const bool narrow = casts && options_.code.fp8_all_gather;
    const Bytes gathered = narrow ? size * (bytes_per_element(options_.precision) / element_) : size;
    layer.forward_collectives.push_back({all_gather, group, gathered, halves});
    layer.forward_collectives.push_back({reduce_scatter, group, size, halves});
    layer.backward_collectives.push_back({all_gather, group, gathered, halves});
    layer.backward_collectives.push_back({reduce_scatter, group, size, halves});
    const bool again = weights_ && !options_.code.keep_gathered_inputs;
    if (again) layer.backward_collectives.push_back({all_gather, group, gathered, halves, again});
  }

  /// One product makes queries, keys and values; GPT-2's code joins them whatever others do.
  [[nodiscard]] bool joins_queries() const {
    return options_.code.fused_qkv || config_.family == TransformerFamily::gpt;
  }
  /// The feed-forward layer has a gate, which is a product of its own.
  [[nodiscard]] bool has_own_gate() const { return config_.gated_ffn && !options_.code.fused_qkv; }
  /// Models that predict the next token have no use for the last one's logits.
  [[nodiscard]] bool shifts_logits() const {
    return options_.code.shifted_logits && is_causal(config_.family) && options_.code.loss.kind == Loss::Kind::eager;
  }
  [[nodiscard]] bool plain() const { return options_.code.kernels == KernelSet::unfused; }
  /// Context ranks attend to whole sequences with a share of the heads each (Ulysses).
  [[nodiscard]] bool divides_heads() const {
    return options_.context > 1 && options_.context_method == ContextMethod::ulysses;
  }
  /// Parts of a block that each begin with a norm and end with a residual addition.
  [[nodiscard]] int halves() const { return config_.source > 0 ? 3 : 2; }
  /// Encoder tokens to which a decoder's tokens attend.
  [[nodiscard]] std::int64_t source_tokens() const { return options_.micro_batch * config_.source; }
  [[nodiscard]] bool fuses(Fusion one) const { return options_.code.fuses(one); }

  // The layers themselves, in transformer.cpp, and before, between and behind them, in transformer_ends.cpp.
  [[nodiscard]] Layer block(LayerKind kind = LayerKind::block) const;
  /// A module that predicts a further token, with its block, its loss and the output layer that it shares.
  [[nodiscard]] Layer further_token() const;
  [[nodiscard]] Layer embedding() const;
  [[nodiscard]] Layer encoder_norm() const;
  [[nodiscard]] Layer head() const;

 private:
  /// `cross`: to the encoder's tokens, in place of the sample's own.
  void attention_half(Layer& layer, bool cross = false) const;
  /// Queries, keys and values of such widths on one rank.
  void attention_projections(Layer& layer, std::int64_t q_width, std::int64_t kv_width, bool cross) const;
  [[nodiscard]] Attention attention_core(std::int64_t kv_heads, std::int64_t head_dim, bool cross) const;
  void attention_kernels(Layer& layer, Attention core) const;
  void merge_ring_steps(Layer& layer, const Attention& core) const;
  void exchange_heads(Layer& layer, const Attention& core) const;
  /// Queries, keys and values out of latent vectors; with the widths that the attention's output and keys have.
  void latent_projections(Layer& layer) const;
  void ffn_half(Layer& layer) const;
  /// The two products of a feed-forward layer and what lies between them, `batch` times over `rows` tokens.
  void ffn_products(Layer& layer, const std::string& name, std::int64_t rows, std::int64_t width, std::int64_t batch,
                    bool experts) const;

  // In transformer_mamba.cpp.
  void mamba_layer(Layer& layer) const;
  /// Operators between the convolution of a Mamba-1 layer and its output.
  void selective_scan(Layer& layer) const;
  /// Products of the state-space duality with what lies between them.
  void scan(Layer& layer) const;

  // Layers of experts, in transformer_experts.cpp.
  void experts_half(Layer& layer) const;
  void route_tokens(Layer& layer, std::int64_t tokens) const;
  void move_tokens(Layer& layer, const std::string& name, double elements, double reads, double writes) const;
  void exchange_tokens(Layer& layer, double routed, double gathered) const;

  // Memory that a layer keeps for its backward pass, and needs while it runs, in transformer_memory.cpp. Of a block: in
  // each way of recomputing, and what is run again; its forward operators must be there.
  void set_block_memory(Layer& layer) const;
  void keep_operators(Layer& layer) const;
  void drop_modules(Layer& layer) const;
  [[nodiscard]] double kept_operand() const;
  void set_half_memory(Layer& layer, LayerKind kind) const;
  void set_embedding_memory(Layer& layer) const;
  /// Parts of the tokens that pass through output layer and loss one after the other.
  [[nodiscard]] std::int64_t loss_parts(std::int64_t rows, std::int64_t outputs) const;
  /// The output layer with its loss over `rows` × `columns` logits.
  void set_head_memory(Layer& layer, std::int64_t rows, std::int64_t columns) const;

  const TransformerConfig& config_;
  const BuildOptions& options_;
  bool weights_;           // are trained
  Precision activations_;  // everything but the blocks' linear layers computes in it
  Bytes element_;
  Bytes stream_;  // of what passes by the branches: under autocast fp32, as embeddings are and norms ask for
  std::int64_t batch_, sequence_;
  std::int64_t tokens_;
};

}  // namespace foretrain
