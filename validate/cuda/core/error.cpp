#include "validate/cuda/core/error.hpp"

#include <cstring>

namespace foretrain::gpu {

namespace {

const char* remedy_of(cudaError_t status) {
  switch (status) {
    case cudaErrorNoDevice:
      return "no GPU is visible: see nvidia-smi, and CUDA_VISIBLE_DEVICES";
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
      return "no NVIDIA driver, or one older than this CUDA runtime: install a newer driver";
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorSystemDriverMismatch:
      return "driver and CUDA libraries do not match: install one of each, or reboot";
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
      return "the GPU is in exclusive use by another process: see nvidia-smi";
    case cudaErrorSystemNotReady:
      return "the system is not ready: is nvidia-fabricmanager running?";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "this build has no code for this GPU: configure it anew on this machine, or see "
             "FORETRAIN_CUDA_ARCHITECTURES";
    case cudaErrorECCUncorrectable:
      return "the GPU's memory has an uncorrectable error: see nvidia-smi -q -d ECC, dmesg";
    default:
      return nullptr;
  }
}

}  // namespace

std::string failed_call(const char* call, const std::string& why, const char* file, int line) {
  const char* inside = std::strstr(file, "validate/cuda/");
  return std::string(call) + " failed: " + why + " (" + (inside ? inside : file) + ":" + std::to_string(line) + ")";
}

Fault fault_of(cudaError_t status) {
  switch (status) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorStubLibrary:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorSystemNotReady:
    case cudaErrorInitializationError:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return Fault::unavailable;
    case cudaErrorMemoryAllocation:
      return Fault::out_of_memory;
    case cudaErrorNotSupported:
    case cudaErrorPeerAccessUnsupported:
      return Fault::unsupported;
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorUnknown:
      return Fault::device_lost;
    case cudaErrorLaunchTimeout:
      return Fault::timeout;
    default:
      return Fault::failed;
  }
}

void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  std::string why = cudaGetErrorString(status);
  if (const char* remedy = remedy_of(status)) why += std::string("; ") + remedy;
  cudaGetLastError();  // errors that do not stick are not to be met again by the next call
  throw GpuError(fault_of(status), failed_call(call, why, file, line));
}

void check(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  Fault fault = Fault::failed;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) fault = Fault::out_of_memory;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) fault = Fault::unsupported;
  if (status == CUBLAS_STATUS_EXECUTION_FAILED) fault = Fault::device_lost;
  throw GpuError(fault, failed_call(call, cublasLtGetStatusString(status), file, line));
}

}  // namespace foretrain::gpu
