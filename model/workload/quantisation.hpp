// Operands of linear layers in formats shorter than 16 bits: copies, scales, traffic.
#pragma once

#include <cstdint>

#include "model/base/quantity.hpp"
#include "model/hardware/precision.hpp"

namespace foretrain {

/// Source of the scales of fp8 operands (key fp8.scaling): delayed, the largest values of earlier steps; current,
/// the largest value of the tensor at hand; block, blocks of it, 1 x 128 of inputs and gradients, 128 x 128 of weights
/// (DeepSeek-AI 2024, arXiv 2412.19437, section 3.3.2); row, the largest value along each sum.
enum class Fp8Scaling { delayed, current, block, row };

/// The casting of a training's operands, as far as the format leaves it open.
struct QuantisationRecipe {
  Fp8Scaling scaling = Fp8Scaling::delayed;
  std::int64_t first_bf16_layers = 0, last_bf16_layers = 0;  ///< blocks at either end that stay in bf16
  bool experts_alone = false;                                ///< all but experts' products stay in bf16
  bool operator==(const QuantisationRecipe&) const = default;
};

/// Storage format of frozen matrices of blocks (key quantisation of a training; Dettmers et al. 2023, arXiv
/// 2305.14314). nf4: half a byte and an fp32 scale for 64 numbers; with `doubly` a byte for these and an fp32 scale for
/// 256 of those. int8: a byte, and an fp32 scale for a row, which is left out.
struct FrozenWeights {
  enum class Format { none, nf4, int8 };
  Format weights = Format::none;
  bool doubly = true;
  [[nodiscard]] bool any() const { return weights != Format::none; }
  [[nodiscard]] Bytes size() const;
  bool operator==(const FrozenWeights&) const = default;
};

/// Operand of a linear layer's GEMMs; `gradient`: that of its result.
enum class Operand { input, gradient, weight };

/// Kernels that quantise a bf16 operand for GEMMs.
struct Quantisation {
  double read = 0.0, written = 0.0;  ///< bytes for each element
  int kernels = 0;                   ///< 0: no kernel of its own
  bool by_norm = false;              ///< a norm that comes before writes it at once
};

/// `both_ways`: products read the operand along its rows and along its columns (data and weight gradients), and scales
/// lie along the sum: two copies.
///
/// delayed  one pass, 2 bytes read and 1 written for each copy; norms write it at once. Weights are cast by the
///          optimizer (NVIDIA Transformer Engine user guide, "Using FP8")
/// current  the tensor is read for its largest value first, of which a second kernel makes the scale
///          (transformer_engine/common/recipe/current_scaling.cu)
/// block    one pass. A scale of 4 bytes for 128 elements of each copy, of weights for 16,384
///          (transformer_engine/common/transpose/quantize_transpose_vector_blockwise.cu)
/// row      a pass for each copy, whose rows are a block's to keep (torchao, float8: float8_rowwise)
/// mxfp8    one pass, both copies with their scales (transformer_engine/common/cast/mxfp8)
/// nvfp4    a pass for the largest values, one that casts rows and one that transforms columns by a Hadamard matrix of
///          16 x 16 and casts them (transformer_engine/pytorch/csrc/quantizer.cpp); weights, in blocks of 16 x 16,
///          are not transformed: both copies in one pass. Stochastic rounding of gradients adds no traffic.
Quantisation quantisation(Precision precision, Fp8Scaling scaling, Operand operand, bool both_ways);

}  // namespace foretrain
