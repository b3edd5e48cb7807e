// Number formats on a GPU: their names in scenarios, sizes, and what CUDA's libraries call them.
#pragma once

#include <library_types.h>

#include <cstddef>
#include <string>

#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

std::size_t size_of(Format format);
cudaDataType_t cuda_type(Format format);

/// Format in which elements of a scenario's `precision` are stored: tf32 in fp32. Throws std::invalid_argument for an
/// unknown word, GpuError with Fault::unsupported for formats without kernels here (int4), and for those that the
/// current GPU lacks (bf16 and tf32 before compute capability 8.0, fp8 before 8.9).
Format format_of(const std::string& precision);

/// Compute capability of the current device, as 90 for 9.0.
int compute_capability();

}  // namespace foretrain::gpu
