// What a trainer's code does in every layer. Each member is a trait of trainers, a key of workload.train;
// scenarios/trainers says what each trainer does, and from where that is known.
#pragma once

#include "model/hardware/precision.hpp"

namespace foretrain {

/// How kernels are cut. fused: one kernel for bias, dropout and residual addition, one for a norm, one for an
/// activation; plain: framework code, operation by operation.
enum class KernelSet { fused, plain };

/// How context ranks share a causal sequence. balanced: a rank has one of the front and one of the back of 2·c pieces,
/// so that in each of c steps all have the same half of s/c queries times s/c keys to do (Megatron-LM,
/// get_batch_on_this_cp_rank); in_order: the last rank sees the most keys, and the others wait for it.
enum class ContextPieces { balanced, in_order };

/// How cross-entropy is computed. eager: a kernel a step, on fp32 copies of the logits; fused: one kernel reads logits
/// and writes their gradient; chunked: output layer, loss and backward pass of both for one part of the tokens after
/// the other (torchtitan, components/loss.py, ChunkedCELoss), each eagerly or, compiled, fused; fused_linear: the same
/// in as many parts as logits are wider than hidden states, gradients over the logits (Liger,
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
  bool joined_projections = true;  ///< one product makes queries, keys and values, one a gated layer's two halves
  bool native_attention = true;    ///< flash attention runs as the GPU's generation has it, not as FlashAttention-2
  bool cast_weights = false;       ///< weights are fp32 and cast in each pass; else the update writes a short copy
  /// One kernel updates a layer's tensors, on gradients as they were summed; else unscaling, norm, clipping and update
  /// are launched for each tensor, on fp32 gradients.
  bool fused_optimizer = true;
  bool clip_gradients = true;  ///< the norm of all gradients is taken and limited before the update
  ContextPieces context_pieces = ContextPieces::balanced;
  bool narrow_gathers = true;  ///< tensor ranks gather what goes into fp8 products as fp8
  bool keep_gathered = false;  ///< inputs that tensor ranks gathered are kept whole; else they are gathered again
  Loss loss;
  bool loss_in_place = false;  ///< eager cross-entropy writes the softmax, and gradients over it, into one copy

  /// Fused modules cast operands themselves (Transformer Engine); plain code has the framework cast them.
  [[nodiscard]] bool casts_in_modules(Precision p) const { return kernels == KernelSet::fused && casts_operands(p); }
};

}  // namespace foretrain
