// libnccl.so.2: collectives that move nothing, in a time that follows from their size.
#include <nccl.h>

#include <cstring>

#include "tests/cuda/fake/settings.hpp"
#include "tests/cuda/fake/world.hpp"

using fake::World;

namespace {

int thing = 0;

ncclResult_t run(std::size_t count, ncclDataType_t type, cudaStream_t stream) {
  if (fake::setting("nccl") == "error") return ncclSystemError;
  const double bytes = static_cast<double>(count) * (type == ncclFloat32 || type == ncclInt32 ? 4 : 2);
  const std::lock_guard<std::mutex> guard(World::get().mutex);
  return World::get().launch(stream, 10e-6 + bytes / 200e9) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSystemError ? "unhandled system error" : "an NCCL result";
}
const char* ncclGetLastError(ncclComm_t) { return "the network interface is down"; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof(*id));
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* made, int, ncclUniqueId, int) {
  *made = reinterpret_cast<ncclComm_t>(&thing);
  return ncclSuccess;
}
ncclResult_t ncclCommInitAll(ncclComm_t* made, int count, const int*) {
  for (int i = 0; i < count; ++i) made[i] = reinterpret_cast<ncclComm_t>(&thing);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }
#define COLLECTIVE(name, ...) \
  ncclResult_t name(__VA_ARGS__, ncclComm_t, cudaStream_t stream) { return run(count, type, stream); }
COLLECTIVE(ncclAllReduce, const void*, void*, std::size_t count, ncclDataType_t type, ncclRedOp_t)
COLLECTIVE(ncclReduceScatter, const void*, void*, std::size_t count, ncclDataType_t type, ncclRedOp_t)
COLLECTIVE(ncclReduce, const void*, void*, std::size_t count, ncclDataType_t type, ncclRedOp_t, int)
COLLECTIVE(ncclAllGather, const void*, void*, std::size_t count, ncclDataType_t type)
COLLECTIVE(ncclBroadcast, const void*, void*, std::size_t count, ncclDataType_t type, int)
COLLECTIVE(ncclSend, const void*, std::size_t count, ncclDataType_t type, int)
COLLECTIVE(ncclRecv, void*, std::size_t count, ncclDataType_t type, int)

}  // extern "C"
