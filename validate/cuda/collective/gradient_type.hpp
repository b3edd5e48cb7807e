// How gradients are stored while they are synchronised.
#pragma once

#include <cstddef>

namespace foretrain::gpu {

enum class GradientType { fp32, fp16, bf16 };

[[nodiscard]] constexpr std::size_t bytes_of(GradientType type) { return type == GradientType::fp32 ? 4 : 2; }

}  // namespace foretrain::gpu
