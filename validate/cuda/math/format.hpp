// Number formats on a GPU: their names in scenarios, sizes, and what CUDA's libraries call them.
#pragma once

#include <library_types.h>

#include <cstddef>
#include <string>

#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

/// Bytes of an element.
std::size_t size_of(Format format);
cudaDataType_t cuda_type(Format format);

/// Format in which elements of a scenario's `precision` are stored: tf32 in fp32. Throws std::invalid_argument for an
/// unknown word, GpuError with Fault::unsupported for formats without kernels here (int4), and for those that the
/// current GPU lacks (bf16 and tf32 before compute capability 8.0, fp8 before 8.9).
Format format_of(const std::string& precision);

/// The short format that the current GPU trains in: "bf16", or "fp16" where it has none.
std::string half_precision();

/// Compute capability of the current device, as 90 for 9.0.
int compute_capability();
/// Multiprocessors of the current device.
int multiprocessors();

/// How many sets of operands of `bytes` each a runner shall have: what was asked for, or for 0 as many as it takes to
/// find none of them in the L2, as far as half of the free memory reaches.
int operand_sets(int asked, std::size_t bytes);

}  // namespace foretrain::gpu
