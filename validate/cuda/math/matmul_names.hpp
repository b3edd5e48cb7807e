// What cuBLASLt chose for a product, in words.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <map>
#include <string>

namespace foretrain::gpu {

struct MatmulConfig {
  std::int32_t id = 0, splits = 1;
  std::uint32_t tile = 0, stages = 0, reduction_scheme = 0, swizzle = 0, custom_option = 0;
};

/// What the algorithm says of itself; what it does not say stays as it is above. Never throws.
MatmulConfig matmul_config(const cublasLtMatmulAlgo_t& algorithm);

/// "128x256" for an identifier of a tile; its number in words where the name is not known.
std::string tile_name(std::uint32_t tile);
/// "64x3": depth of a stage in k, and how many.
std::string stages_name(std::uint32_t stages);

/// algorithm, tile (rows and columns of cuBLASLt's C: those of our transposed C), stages, split_k.
std::map<std::string, std::string> texts_of(const MatmulConfig& config);

}  // namespace foretrain::gpu
