// libnccl.so.2: collectives that move nothing, in a time that follows from their size.
#include "tests/cuda/fake/libraries.hpp"

namespace {

constexpr int unhandled_cuda_error = 1, system_error = 2;  // ncclUnhandledCudaError, ncclSystemError

int run_nccl(std::size_t count, cudaStream_t stream) {
  if (fake::setting("nccl") == "error") return system_error;
  return fake::run(stream, 10e-6 + 4.0 * static_cast<double>(count) / 200e9, unhandled_cuda_error);
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) { return *version = 22809, 0; }
const char* ncclGetErrorString(int result) {
  return result == system_error ? "unhandled system error" : "an NCCL result";
}
const char* ncclGetLastError(void*) { return "the network interface is down"; }
MAKES(ncclCommInitRank)
int ncclCommInitAll(void** made, int count, const int*) {
  for (int i = 0; i < count; ++i) ncclCommInitRank(made + i);
  return 0;
}
ACCEPTS(ncclGetUniqueId)
ACCEPTS(ncclCommDestroy)
ACCEPTS(ncclCommAbort)
ACCEPTS(ncclGroupStart)
ACCEPTS(ncclGroupEnd)
int ncclCommGetAsyncError(void*, int* error) { return *error = 0; }
#define COLLECTIVE(name, ...) \
  int name(__VA_ARGS__, void*, cudaStream_t stream) { return run_nccl(count, stream); }
COLLECTIVE(ncclAllReduce, const void*, void*, std::size_t count, int, int)
COLLECTIVE(ncclReduceScatter, const void*, void*, std::size_t count, int, int)
COLLECTIVE(ncclReduce, const void*, void*, std::size_t count, int, int, int)
COLLECTIVE(ncclAllGather, const void*, void*, std::size_t count, int)
COLLECTIVE(ncclBroadcast, const void*, void*, std::size_t count, int, int)
COLLECTIVE(ncclSend, const void*, std::size_t count, int, int)
COLLECTIVE(ncclRecv, void*, std::size_t count, int, int)

}  // extern "C"
