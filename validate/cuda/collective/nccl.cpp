#include "validate/cuda/collective/nccl.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <exception>

#ifdef FORETRAIN_HAS_NCCL
#include "validate/measure/signals.hpp"
#endif

namespace foretrain::gpu {

std::map<std::string, std::string> nccl_parameters() {
  std::map<std::string, std::string> parameters{{"nccl", nccl_version()}};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* sign = std::strchr(*entry, '=');
    if (std::strncmp(*entry, "NCCL_", 5) != 0 || std::strncmp(*entry, "NCCL_DEBUG", 10) == 0 || !sign) continue;
    parameters[std::string(*entry, static_cast<std::size_t>(sign - *entry))] = sign + 1;
  }
  return parameters;
}

std::string nccl_version() {
#ifdef FORETRAIN_HAS_NCCL
  int version = 0;
  if (ncclGetVersion(&version) == ncclSuccess) {  // 22703 is 2.27.3
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
  }
#endif
  return "";
}

#ifdef FORETRAIN_HAS_NCCL

void check(ncclResult_t status, const char* call, const char* file, int line) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  std::string why = ncclGetErrorString(status);
  Fault fault = Fault::failed;
  if (status == ncclUnhandledCudaError) {
    // NCCL passes on what CUDA said; what CUDA remembers tells whether the context is gone.
    const cudaError_t cause = cudaGetLastError();
    if (cause != cudaSuccess) {
      fault = fault_of(cause);
      why += std::string(": ") + cudaGetErrorString(cause);
    }
  }
  const char* last = ncclGetLastError(nullptr);
  if (last != nullptr && *last != '\0') why += std::string(": ") + last;
  throw GpuError(fault, failed_call(call, why, file, line) + "; see NCCL_DEBUG=INFO");
}

Communicators::Communicators(const std::vector<int>& devices) : members_(devices.size()) {
  GPU_CHECK(ncclCommInitAll(members_.data(), static_cast<int>(devices.size()), devices.data()));
}

Communicators::Communicators(int ranks, int rank, const ncclUniqueId& id) : members_(1) {
  GPU_CHECK(ncclCommInitRank(members_.data(), ranks, id, rank));
}

Communicators::~Communicators() {
  for (ncclComm_t member : members_) std::uncaught_exceptions() > 0 ? ncclCommAbort(member) : ncclCommDestroy(member);
}

void Communicators::group(const std::function<void(std::size_t member, ncclComm_t communicator)>& call) {
  GPU_CHECK(ncclGroupStart());
  try {
    for (std::size_t i = 0; i < members_.size(); ++i) call(i, members_[i]);
  } catch (...) {
    ncclGroupEnd();
    throw;
  }
  GPU_CHECK(ncclGroupEnd());
}

void Communicators::all_reduce(const std::vector<float*>& from, const std::vector<float*>& to, std::size_t elements,
                               const std::vector<cudaStream_t>& streams) {
  group([&](std::size_t i, ncclComm_t communicator) {
    GPU_CHECK(ncclAllReduce(from[i], to[i], elements, ncclFloat, ncclSum, communicator, streams[i]));
  });
}

void Communicators::wait(const std::vector<cudaStream_t>& streams) {
  for (cudaStream_t stream : streams) {  // one that is idle stays so: only this thread gives it work
    for (cudaError_t status; (status = cudaStreamQuery(stream)) != cudaSuccess; sched_yield()) {
      if (status != cudaErrorNotReady) GPU_CHECK(status);
      (void)cudaGetLastError();  // no error, but kept as one: the next launch's check would find it
      throw_if_interrupted();
      for (ncclComm_t member : members_) {
        ncclResult_t error = ncclSuccess;
        GPU_CHECK(ncclCommGetAsyncError(member, &error));
        GPU_CHECK(error);
      }
    }
  }
}

#endif

}  // namespace foretrain::gpu
