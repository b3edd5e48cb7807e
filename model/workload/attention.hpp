// The attention operator: shapes, masks and which algorithm is asked for (see operator.hpp). No device, no time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/base/number.hpp"
#include "model/base/quantity.hpp"

namespace foretrain {

/// Algorithms of Softmax(Q Kᵀ) V. `flash` is what a good framework would pick on the GPU at hand
/// (cost/attention.hpp).
enum class AttentionKind { standard, flash, memory_efficient, flash_1, flash_2, flash_3 };

/// Sequences of unlike lengths laid out behind one another, each attending to itself alone (a block-diagonal mask).
struct Packing {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;   ///< sum of the lengths
  std::int64_t longest = 0;  ///< the longest length
  std::int64_t blocks = 0;   ///< sum of the lengths, each in blocks of `block_rows`, rounded up
  double pairs = 0.0;        ///< query–key pairs within the sequences that the masks leave
  bool operator==(const Packing&) const = default;

  static constexpr std::int64_t block_rows = 128;  ///< rows of one thread block of the flash kernels
};

/// Softmax(Q Kᵀ) V for [batch, heads, query_length, head_dim] against kv_heads of [key_length, head_dim].
struct Attention {
  static constexpr std::string_view word = "attention";
  std::int64_t batch = 1, heads = 1, kv_heads = 1, query_length = 1, key_length = 1, head_dim = 1;
  bool causal = false;
  AttentionKind kind = AttentionKind::flash;
  bool backward = false;
  bool biased = false;  ///< a bias is added to the scores (ALiBi)
  bool native = true;   ///< `flash` may use the architecture's own kernels (cuDNN), not FlashAttention-2 alone
  /// An inference engine's attention over a prompt: a kernel of its own before it splits the projection's result,
  /// rotates it and writes keys and values to a cache.
  bool cached = false;
  bool dropout = false;        ///< probabilities are dropped, by kernels of their own in standard attention
  bool fused_softmax = false;  ///< standard attention: scaling, mask and softmax are one kernel (Megatron's)
  std::int64_t window = 0;     ///< keys that a query sees on either side, itself included; 0: no window
  double density = 1.0;        ///< share of the score blocks that a block-sparse mask keeps
  bool deterministic = false;  ///< gradients are added up in a fixed order
  int splits = 0;              ///< thread blocks per head of FlashAttention-1; 0: as many as fill the device
  bool ring = false;           ///< steps of a ring over context ranks, of which `batch` counts each
  std::optional<Packing> packing =
      std::nullopt;  ///< packing of the samples in each row, whose tokens are query_length and key_length
  bool operator==(const Attention&) const = default;

  /// Whether some scores are not needed: a causal, windowed, block-sparse or padding mask.
  [[nodiscard]] bool masked() const;

  /// Whether it is an inference engine's, with its cache, where nobody says otherwise: who else runs causal attention
  /// forward alone measures a kernel, and says so.
  [[nodiscard]] bool engine_by_default() const {
    return kind == AttentionKind::flash && native && causal && !backward && !packing;
  }

  /// Elements of Q, and of O.
  [[nodiscard]] double queries() const {
    return number(batch) * number(heads) * (number(query_length) * number(head_dim));
  }
  /// Elements of K, and of V.
  [[nodiscard]] double keys() const {
    return number(batch) * number(kv_heads) * (number(key_length) * number(head_dim));
  }
  [[nodiscard]] Flops operations() const;
  /// Forward reads Q, K, V and writes O; backward reads these and dO and writes dQ, dK, dV.
  [[nodiscard]] Bytes traffic(Bytes element) const { return (backward ? 4.0 : 2.0) * (queries() + keys()) * element; }
  [[nodiscard]] Bytes result(Bytes element) const {
    return (backward ? queries() + 2.0 * keys() : queries()) * element;
  }
};

/// Query–key pairs of one head of one sequence, before block sparsity. With a causal mask query i of q sees the first
/// key_length - q + i keys, or the last `window` of these.
double attended_pairs(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t window);

/// Packs sequences of these lengths, in any order; each at least 1.
Packing pack(std::span<const std::int64_t> lengths, bool causal, std::int64_t window);

/// Query–key pairs that attention scores, over the whole batch and all heads.
double scores(const Attention& attention);

}  // namespace foretrain
