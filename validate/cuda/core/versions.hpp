// Versions of what the program runs with.
#pragma once

#include <string>

namespace foretrain::gpu {

/// "13.0"; "" for what was not built in.
struct Versions {
  std::string runtime, driver, cublaslt, cudnn;
};
Versions library_versions();

/// The CUDA version that the driver knows, as CUDART_VERSION counts; 0 without a driver.
int driver_version();
/// 12040 is "12.4".
std::string version_text(int cuda_version);

}  // namespace foretrain::gpu
