#include "validate/cuda/core/error.hpp"

#include <cstring>

namespace foretrain::gpu {

namespace {

constexpr const char* no_driver = "no NVIDIA driver, or one older than this CUDA runtime: install a newer driver";
constexpr const char* no_match = "driver and CUDA libraries do not match: install one of each, or reboot";
constexpr const char* exclusive = "the GPU is in exclusive use by another process: see nvidia-smi";
constexpr const char* no_code =
    "this build has no code for this GPU: configure it anew on this machine, or see FORETRAIN_CUDA_ARCHITECTURES";

/// Meaning of a status for the run and a remedy; null if unknown.
struct StatusRow {
  cudaError_t status;
  Fault fault;
  const char* remedy = nullptr;
};
constexpr StatusRow rows[] = {
    {cudaErrorNoDevice, Fault::unavailable, "no GPU is visible: see nvidia-smi, and CUDA_VISIBLE_DEVICES"},
    {cudaErrorInsufficientDriver, Fault::unavailable, no_driver},
    {cudaErrorStubLibrary, Fault::unavailable, no_driver},
    {cudaErrorCompatNotSupportedOnDevice, Fault::unavailable, no_match},
    {cudaErrorSystemDriverMismatch, Fault::unavailable, no_match},
    {cudaErrorDevicesUnavailable, Fault::unavailable, exclusive},
    {cudaErrorDeviceUninitialized, Fault::unavailable, exclusive},
    {cudaErrorSystemNotReady, Fault::unavailable, "the system is not ready: is nvidia-fabricmanager running?"},
    {cudaErrorInitializationError, Fault::unavailable},
    {cudaErrorNoKernelImageForDevice, Fault::unavailable, no_code},
    {cudaErrorUnsupportedPtxVersion, Fault::unavailable, no_code},
    {cudaErrorMemoryAllocation, Fault::out_of_memory},
    {cudaErrorNotSupported, Fault::unsupported},
    {cudaErrorPeerAccessUnsupported, Fault::unsupported},
    {cudaErrorECCUncorrectable, Fault::device_lost,
     "the GPU's memory has an uncorrectable error: see nvidia-smi -q -d ECC, dmesg"},
    {cudaErrorIllegalAddress, Fault::device_lost},
    {cudaErrorLaunchFailure, Fault::device_lost},
    {cudaErrorHardwareStackError, Fault::device_lost},
    {cudaErrorIllegalInstruction, Fault::device_lost},
    {cudaErrorMisalignedAddress, Fault::device_lost},
    {cudaErrorInvalidAddressSpace, Fault::device_lost},
    {cudaErrorInvalidPc, Fault::device_lost},
    {cudaErrorNvlinkUncorrectable, Fault::device_lost},
    {cudaErrorUnknown, Fault::device_lost},
    {cudaErrorLaunchTimeout, Fault::device_lost}};

StatusRow row_of(cudaError_t status) {
  for (const StatusRow& row : rows) {
    if (row.status == status) return row;
  }
  return {status, Fault::failed};
}

}  // namespace

std::string failed_call(const char* call, const std::string& why, const char* file, int line) {
  const char* inside = std::strstr(file, "validate/cuda/");
  return std::string(call) + " failed: " + why + " (" + (inside ? inside : file) + ":" + std::to_string(line) + ")";
}

Fault fault_of(cudaError_t status) { return row_of(status).fault; }

void check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  std::string why = cudaGetErrorString(status);
  if (const char* remedy = row_of(status).remedy) why += std::string("; ") + remedy;
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
