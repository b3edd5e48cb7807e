#include "validate/cuda/math/format.hpp"

#include <algorithm>
#include <stdexcept>

namespace foretrain::gpu {

namespace {

struct FormatRow {
  Format format;
  std::size_t size;
  cudaDataType_t type;
};

constexpr FormatRow rows[] = {{Format::fp64, 8, CUDA_R_64F},    {Format::fp32, 4, CUDA_R_32F},
                              {Format::fp16, 2, CUDA_R_16F},    {Format::bf16, 2, CUDA_R_16BF},
                              {Format::fp8, 1, CUDA_R_8F_E4M3}, {Format::int8, 1, CUDA_R_8I},
                              {Format::int32, 4, CUDA_R_32I},   {Format::int64, 8, CUDA_R_64I}};

const FormatRow& row_of(Format format) { return rows[static_cast<std::size_t>(format)]; }

void require(const std::string& precision, int least) {
  const int have = compute_capability();
  if (have >= least) return;
  const auto text = [](int capability) {
    return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
  };
  throw GpuError(Fault::unsupported, "this GPU has no " + precision + " (compute capability " + text(have) +
                                         "; it came with " + text(least) + ")");
}

}  // namespace

std::size_t size_of(Format format) { return row_of(format).size; }
cudaDataType_t cuda_type(Format format) { return row_of(format).type; }

Format format_of(const std::string& precision) {
  if (precision == "fp64") return Format::fp64;
  if (precision == "fp32") return Format::fp32;
  if (precision == "fp16") return Format::fp16;
  if (precision == "int8") return Format::int8;
  if (precision == "tf32") {
    require(precision, 80);
    return Format::fp32;
  }
  if (precision == "bf16") {
    require(precision, 80);
    return Format::bf16;
  }
  if (precision == "fp8") {
    require(precision, 89);
    return Format::fp8;
  }
  if (precision == "int4") throw GpuError(Fault::unsupported, "there are no int4 kernels here");
  throw std::invalid_argument("precision: unknown word \"" + precision + "\"");
}

std::string half_precision() { return compute_capability() < 80 ? "fp16" : "bf16"; }

int compute_capability() {
  return 10 * device_attribute(cudaDevAttrComputeCapabilityMajor) + device_attribute(cudaDevAttrComputeCapabilityMinor);
}

int multiprocessors() { return std::max(device_attribute(cudaDevAttrMultiProcessorCount), 1); }

int operand_sets(int asked, std::size_t bytes) {
  if (asked > 0) return asked;
  const std::size_t fitting = usable_memory() / 2 / std::max<std::size_t>(bytes, 1);
  return static_cast<int>(std::clamp<std::size_t>(fitting, 1, static_cast<std::size_t>(rotation_for(bytes))));
}

}  // namespace foretrain::gpu
