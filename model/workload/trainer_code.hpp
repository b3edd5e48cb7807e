// Settings of a framework's code in every layer. Each member is a framework setting, a key of workload.train;
// scenarios/frameworks says what each trainer does, and from where that is known.
#pragma once

#include <initializer_list>

#include "model/hardware/precision.hpp"

namespace foretrain {

/// Fusion of kernels. fused: one kernel for bias, dropout and residual addition, one for a norm, one for an
/// activation; plain: framework code, operation by operation.
enum class KernelSet { fused, unfused };

/// Sharding of a causal sequence over context ranks. zigzag: a rank has one of the front and one of the back of 2·c
/// pieces, so that in each of c steps all have the same half of s/c queries times s/c keys to do (Megatron-LM,
/// get_batch_on_this_cp_rank); contiguous: the last rank sees the most keys, and the others wait for it.
enum class ContextSharding { zigzag, contiguous };

/// Exchange of keys between context ranks (key plan.context_method). ring: keys and values go round, each step's
/// beside the attention to those before (Megatron-Core's p2p); all_gather: every rank gathers them first; ulysses:
/// all-to-alls give each rank the whole sequence of its share of the heads, and bring the attention's output back
/// (DeepSpeed, sequence/layer.py; Megatron-Core's a2a).
enum class ContextMethod { ring, all_gather, ulysses };

/// Memory layout of images. nchw: each channel by itself; nhwc: a pixel's channels side by side (PyTorch's
/// channels_last), as kernels for tensor cores read them.
enum class MemoryFormat { nchw, nhwc };

/// Operations that one kernel does although kernels are plain. norm: a norm in one pass over each row; of images, batch
/// norm with the activation and the residual sum behind it.
enum class Fusion { norm, softmax, activation, bias_dropout_add, rotary, cross_entropy, optimizer };

class Fusions {
 public:
  constexpr Fusions(std::initializer_list<Fusion> all = {}) {
    for (const Fusion one : all) add(one);
  }
  constexpr void add(Fusion one) { bits_ |= bit(one); }
  [[nodiscard]] constexpr bool has(Fusion one) const { return (bits_ & bit(one)) != 0; }
  bool operator==(const Fusions&) const = default;

 private:
  static constexpr unsigned bit(Fusion one) { return 1U << static_cast<unsigned>(one); }
  unsigned bits_ = 0;
};

/// Computation of the cross-entropy. eager: a kernel a step, on fp32 copies of the logits; fused: one kernel reads
/// logits and writes their gradient; chunked: output layer, loss and backward pass of both for one part of the tokens
/// after the other (torchtitan, components/loss.py, ChunkedCELoss), each eagerly or, compiled, fused; fused_linear: the
/// same in as many parts as logits are wider than hidden states, gradients over the logits (Liger,
/// ops/fused_linear_cross_entropy.py).
struct Loss {
  enum class Kind { eager, fused, chunked, fused_linear };
  Kind kind = Kind::eager;
  int chunks = 1;  ///< of chunked
  /// Logits are read in their own format and no fp32 copy is made.
  [[nodiscard]] bool fused(bool compiled) const {
    return kind == Kind::fused || kind == Kind::fused_linear || (kind == Kind::chunked && compiled);
  }
  /// The gradient of the hidden states is ready once the loss is, and logits are gone.
  [[nodiscard]] bool in_parts() const { return kind == Kind::chunked || kind == Kind::fused_linear; }
  bool operator==(const Loss&) const = default;
};

struct TrainerCode {
  KernelSet kernels = KernelSet::fused;
  Fusions fusions;  ///< beside unfused kernels, and of networks of layers
  MemoryFormat memory_format = MemoryFormat::nchw;
  bool fused_qkv = true;            ///< one product makes queries, keys and values, one a gated layer's two halves
  bool native_attention = true;     ///< flash attention runs as the GPU's generation has it, not as FlashAttention-2
  bool cache_cast_weights = false;  ///< weights are fp32 and cast in each pass; else the update writes a short copy
  /// One kernel updates a layer's tensors, on gradients as they were summed; else unscaling, norm, clipping and update
  /// are launched for each tensor, on fp32 gradients.
  bool fused_optimizer = true;
  bool fp32_states = true;  ///< also where weights are shorter and have no fp32 copy; else all have the weights' format
  bool fp32_adapters = false;  ///< adapters and their states are fp32, whatever the frozen weights' format
  bool clip_gradients = true;  ///< the norm of all gradients is taken and limited before the update
  ContextSharding context_sharding = ContextSharding::zigzag;
  bool fp8_all_gather = true;  ///< tensor ranks gather what goes into fp8 products as fp8
  bool keep_gathered_inputs =
      false;                    ///< inputs that tensor ranks gathered are kept whole; else they are gathered again
  bool shifted_logits = false;  ///< the loss reads a copy of the logits without the last token's (key shifted_logits)
  bool gather_logits = false;   ///< tensor ranks gather whole rows of logits for the loss; else each keeps its columns
  Loss loss;
  /// Sums have a fixed order, and results are filled before they are written (torch.use_deterministic_algorithms).
  bool deterministic = false;
  bool inplace_cross_entropy = false;  ///< eager cross-entropy writes the softmax, and gradients over it, into one copy

  [[nodiscard]] bool fuses(Fusion one) const { return kernels == KernelSet::fused || fusions.has(one); }
  /// Fused modules cast operands themselves (Transformer Engine); plain code has the framework cast them.
  [[nodiscard]] bool casts_in_modules(Precision p) const { return kernels == KernelSet::fused && casts_operands(p); }
};

}  // namespace foretrain
