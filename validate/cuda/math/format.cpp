#include "validate/cuda/math/format.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace foretrain::gpu {

namespace {

/// A scenario's `precision`, how it is stored, and the compute capability that it came with.
struct FormatRow {
  const char* precision;
  Format format;
  std::size_t size;
  cudaDataType_t type;
  int since = 0;
};
constexpr FormatRow rows[] = {{"fp64", Format::fp64, 8, CUDA_R_64F},      {"fp32", Format::fp32, 4, CUDA_R_32F},
                              {"tf32", Format::fp32, 4, CUDA_R_32F, 80},  {"fp16", Format::fp16, 2, CUDA_R_16F},
                              {"bf16", Format::bf16, 2, CUDA_R_16BF, 80}, {"fp8", Format::fp8, 1, CUDA_R_8F_E4M3, 89},
                              {"int8", Format::int8, 1, CUDA_R_8I},       {"int32", Format::int32, 4, CUDA_R_32I}};

const FormatRow& row_of(Format format) { return *std::ranges::find(rows, format, &FormatRow::format); }

std::string text_of(int capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }

}  // namespace

std::size_t size_of(Format format) { return row_of(format).size; }
cudaDataType_t cuda_type(Format format) { return row_of(format).type; }

Format format_of(const std::string& precision) {
  if (precision == "int4") throw GpuError(Fault::unsupported, "there are no int4 kernels here");
  const auto* row = std::ranges::find(rows, precision, &FormatRow::precision);
  if (row == std::end(rows)) throw std::invalid_argument("precision: unknown word \"" + precision + "\"");
  const int have = compute_capability();
  if (have >= row->since) return row->format;
  throw GpuError(Fault::unsupported, "this GPU has no " + precision + " (compute capability " + text_of(have) +
                                         "; it came with " + text_of(row->since) + ")");
}

int compute_capability() {
  return 10 * device_attribute(cudaDevAttrComputeCapabilityMajor) + device_attribute(cudaDevAttrComputeCapabilityMinor);
}

}  // namespace foretrain::gpu
