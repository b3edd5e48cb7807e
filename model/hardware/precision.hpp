// Number formats of accelerators.
#pragma once

#include <array>

#include "model/base/quantity.hpp"
#include "model/base/words.hpp"

namespace foretrain {

/// mxfp8 and nvfp4 are block-scaled: 32 elements of 8 bits share a scale of one byte (OCP Microscaling Formats 1.0,
/// E4M3 and E8M0), 16 elements of 4 bits one of their own (NVIDIA, arXiv 2509.25149: E2M1 and E4M3, and an fp32 for the
/// whole tensor).
enum class Precision { fp64, fp32, tf32, fp16, bf16, fp8, int8, int4, mxfp8, nvfp4 };
inline constexpr int precision_count = static_cast<int>(names_of<Precision>.size());

/// Size of one element in memory (tf32 is stored as fp32), with its part of a block's scale.
constexpr Bytes bytes_per_element(Precision p) {
  constexpr std::array<double, precision_count> size = {8, 4, 4, 2, 2, 1, 1, 0.5, 1.0 + 1.0 / 32.0, 0.5 + 1.0 / 16.0};
  return Bytes(size[static_cast<std::size_t>(p)]);
}
constexpr bool is_block_scaled(Precision p) { return p == Precision::mxfp8 || p == Precision::nvfp4; }
/// Whether training in `p` casts the operands of linear layers alone to it, from bf16.
constexpr bool casts_operands(Precision p) { return p == Precision::fp8 || is_block_scaled(p); }
/// Format of weights, gradients and activations when a model trains in `p`.
constexpr Precision storage_precision(Precision p) {
  using enum Precision;
  constexpr std::array<Precision, precision_count> kept = {fp64, fp32, tf32, fp16, bf16, bf16, int8, int4, bf16, bf16};
  return kept[static_cast<std::size_t>(p)];  // a table: GCC 14.2 makes bf16 of fp32 where a condition says the same
}
/// Format of results of GEMMs in `p`: no kernel scales its results.
constexpr Precision result_precision(Precision p) { return storage_precision(p); }

}  // namespace foretrain
