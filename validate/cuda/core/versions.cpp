#include "validate/cuda/core/versions.hpp"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#ifdef FORETRAIN_HAS_CUDNN
#include <cudnn.h>
#endif

namespace foretrain::gpu {

namespace {

std::string dotted(std::size_t major, std::size_t minor, std::size_t patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

}  // namespace

int driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

std::string version_text(int cuda_version) {
  return std::to_string(cuda_version / 1000) + "." + std::to_string(cuda_version % 1000 / 10);
}

Versions library_versions() {
  Versions out;
  int runtime = 0;
  if (cudaRuntimeGetVersion(&runtime) == cudaSuccess) out.runtime = version_text(runtime);
  out.driver = version_text(driver_version());
  const std::size_t cublas = cublasLtGetVersion();  // 120304 is 12.3.4, 130001 is 13.0.1
  out.cublaslt = dotted(cublas / 10000, cublas / 100 % 100, cublas % 100);
#ifdef FORETRAIN_HAS_CUDNN
  const std::size_t cudnn = cudnnGetVersion();  // 90100 is 9.1.0 since version 9, 8907 was 8.9.7
  out.cudnn = cudnn >= 90000 ? dotted(cudnn / 10000, cudnn / 100 % 100, cudnn % 100)
                             : dotted(cudnn / 1000, cudnn / 100 % 10, cudnn % 100);
#endif
  return out;
}

}  // namespace foretrain::gpu
