// Random contents of buffers whose sums are exact in fp32, on hosts and GPUs alike.
#pragma once

#include <cstdint>

#include "validate/cuda/core/host_device.hpp"

namespace foretrain::gpu {

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
FORETRAIN_HOST_DEVICE inline std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// Element `index` of what `rank` contributes: a random multiple of 2⁻¹² in [-1, 1). Sums of up to 4,096 ranks need no
/// more than the 24 bits that fp32 has, so that every order of adding gives the same number.
FORETRAIN_HOST_DEVICE inline float contribution(int rank, std::uint64_t index) {
  const std::uint64_t bits = mixed(static_cast<std::uint64_t>(rank + 1) * 0x9e3779b97f4a7c15ULL + mixed(index + 1));
  return static_cast<float>(static_cast<int>(bits >> 51) - 4096) * (1.0F / 4096.0F);
}

}  // namespace foretrain::gpu
