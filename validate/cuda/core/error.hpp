// Failed calls of CUDA and its libraries, as exceptions that say what was called, where, and what a user can do.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace foretrain::gpu {

/// Effect of a failure on the rest of the run.
enum class Fault {
  unavailable,    ///< no driver, too old a driver, no usable GPU: nothing can be measured
  out_of_memory,  ///< this point does not fit; smaller ones may
  unsupported,    ///< this GPU or library cannot do this point; others may work
  device_lost,    ///< ECC error, Xid, illegal access, a hang: the context is gone, and with it this process's work
  failed          ///< anything else
};

class GpuError : public std::runtime_error {
 public:
  GpuError(Fault fault, const std::string& what) : std::runtime_error(what), fault_(fault) {}
  [[nodiscard]] Fault fault() const { return fault_; }

 private:
  Fault fault_;
};

/// "cudaMalloc(&data, size) failed: out of memory (validate/cuda/core/device.cpp:41)".
std::string failed_call(const char* call, const std::string& why, const char* file, int line);

/// Fault and text of a status, with the remedy where there is one. No throw for success.
void check(cudaError_t status, const char* call, const char* file, int line);
void check(cublasStatus_t status, const char* call, const char* file, int line);

/// Effect of a CUDA status on the run.
Fault fault_of(cudaError_t status);

}  // namespace foretrain::gpu

/// Throws GpuError, with the text of the call, unless it succeeded. cuDNN and NCCL add their own overloads of check().
#define GPU_CHECK(call) ::foretrain::gpu::check((call), #call, __FILE__, __LINE__)
