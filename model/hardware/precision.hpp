// Number formats of accelerators.
#pragma once

#include <array>
#include <optional>

#include "model/base/quantity.hpp"
#include "model/base/words.hpp"

namespace foretrain {

enum class Precision { fp64, fp32, tf32, fp16, bf16, fp8, int8, int4 };
inline constexpr int precision_count = static_cast<int>(names_of<Precision>.size());

/// Size of one element in memory (tf32 is stored as fp32).
constexpr Bytes bytes_per_element(Precision p) {
  constexpr std::array<double, precision_count> size = {8, 4, 4, 2, 2, 1, 1, 0.5};
  return Bytes(size[static_cast<std::size_t>(p)]);
}
/// What weights, gradients and activations are kept in when a model trains in `p`: fp8 training casts from bf16.
constexpr Precision storage_precision(Precision p) { return p == Precision::fp8 ? Precision::bf16 : p; }

}  // namespace foretrain
