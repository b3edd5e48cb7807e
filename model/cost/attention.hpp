// Attention on a device: which algorithm runs, its traffic and its memory. Times are in kernels.hpp.
#pragma once

#include <optional>
#include <string>

#include "model/base/number.hpp"
#include "model/base/quantity.hpp"
#include "model/hardware/gpu.hpp"
#include "model/workload/attention.hpp"

namespace foretrain {

/// The kernels for the requested attention. `standard` writes the scores to memory; `memory_efficient` is fused kernels
/// of the first generation (CUTLASS, xformers), for any GPU and precision; `flash_1`, `flash_2` and `flash_3` are the
/// releases of FlashAttention; `flash` is the vendor's own kernels: with the architecture's own matrix instructions
/// (cuDNN and TensorRT-LLM on Hopper and Blackwell), else an inference engine's.
///
/// Asked for, `flash` means these where there are such instructions or a cache is written, else FlashAttention-2. Every
/// kind of flash falls back to the
/// memory-efficient kernels where it does not run: before Ampere (Turing for flash_1), in fp32, for heads of more than
/// 256 elements (128 for flash_1), with a bias on the scores.
AttentionKind attention_kernel(const Attention& work, Precision precision, const Gpu& gpu);

/// Why the kind asked for by name does not run, and what would.
struct UnsupportedAttention {
  std::string wrong, right;
};
/// Nothing for standard, memory_efficient and flash, which always run in some way.
std::optional<UnsupportedAttention> unsupported_attention(const Attention& work, Precision precision, const Gpu& gpu);

/// Traffic to device memory. Standard attention reads and writes the scores several times, O(N²). FlashAttention-1
/// reads and writes its partial output in fp32 for every block of M/(4·head_dim) keys that fits into shared memory:
/// Θ(N²·head_dim²/M) (Dao et al. 2022, arXiv 2205.14135, theorem 2). The others keep the output in registers and read
/// keys and values once for every block of queries, from the L2 as far as it holds those of the heads in flight.
Bytes attention_traffic(const Attention& work, Precision precision, const Gpu& gpu);

/// Memory of one pass.
struct OperatorMemory {
  Bytes saved;      ///< kept from forward to backward: Q, K, V, O and the scores' matrices or their log-sum-exp
  Bytes workspace;  ///< taken and given back during the pass
  Bytes peak;       ///< saved, workspace, and in the backward pass the gradients of the four
};
OperatorMemory attention_memory(const Attention& work, Precision precision, const Gpu& gpu);

/// Passes over the whole scores' matrix in device memory, in units of one reading or writing.
struct ScorePasses {
  double products = 0.0;  ///< as operand or result of a GEMM
  double softmax = 0.0;   ///< by softmax and dropout
  double mask = 0.0;      ///< by kernels that add a mask
};
/// Traffic of standard attention. Forward: S is written by QKᵀ, read and written by the softmax, P is read by PV.
/// Backward: dP is written by dO Vᵀ, P and dP are read and dS written by the softmax, P read for dV, dS for dQ and dK.
/// Dropout adds a reading, a writing and a mask of one byte an element. `mask_passes`: what adding a mask costs where
/// it is a kernel of its own (see ScorePasses::mask); the backward pass adds none.
ScorePasses score_passes(const Attention& work, Precision precision, double mask_passes);

/// Rows and columns that standard attention multiplies: packed sequences are padded to the longest, masks save nothing.
struct ScoreMatrices {
  std::int64_t count = 0, rows = 0, columns = 0;
  [[nodiscard]] double elements() const { return number(count) * number(rows) * number(columns); }
};
ScoreMatrices score_matrices(const Attention& work);

/// Queries (keys) of all rows of the batch and all heads, and the blocks of Packing::block_rows that they fill.
struct HeadRows {
  double rows = 0.0, blocks = 0.0;
};
HeadRows query_rows(const Attention& work);
HeadRows key_rows(const Attention& work);

}  // namespace foretrain
