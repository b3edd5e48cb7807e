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
  bool gather_logits = false;  ///< tensor ranks gather whole rows of logits for the loss; else each keeps its columns
  bool loss_in_place = false;  ///< eager cross-entropy writes the softmax, and gradients over it, into one copy

  /// Fused modules cast operands themselves (Transformer Engine); plain code has the framework cast them.
  [[nodiscard]] bool casts_in_modules(Precision p) const { return kernels == KernelSet::fused && casts_operands(p); }
};

}  // namespace foretrain
