#include "validate/cuda/collective/nccl.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <utility>

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
  if (ncclGetVersion(&version) == ncclSuccess) {  // 22703 is 2.27.3; up to 2.8 it was 1000·major + 100·minor + patch
    const int major = version >= 10000 ? version / 10000 : version / 1000;
    const int minor = version >= 10000 ? version / 100 % 100 : version / 100 % 10;
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 100);
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
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 13, 0)
  const char* last = ncclGetLastError(nullptr);
  if (last != nullptr && *last != '\0') why += std::string(": ") + last;
#endif
  throw GpuError(fault, failed_call(call, why, file, line) + "; see NCCL_DEBUG=INFO");
}

Communicators::Communicators(const std::vector<int>& devices) : ranks_(static_cast<int>(devices.size())) {
  std::vector<ncclComm_t> handles(devices.size());
  GPU_CHECK(ncclCommInitAll(handles.data(), ranks_, devices.data()));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const OnDevice on(devices[i]);
    members_.push_back({static_cast<int>(i), devices[i], handles[i], std::make_unique<Stream>()});
  }
}

Communicators::Communicators(World& world, int ranks, int device) : ranks_(ranks) {
  ncclUniqueId id;
  std::memset(&id, 0, sizeof(id));
  if (world.leads()) GPU_CHECK(ncclGetUniqueId(&id));
  world.broadcast(&id, sizeof(id));
  if (world.rank() >= ranks) return;
  GPU_CHECK(cudaSetDevice(device));
  members_.push_back({world.rank(), device, nullptr, std::make_unique<Stream>()});
  GPU_CHECK(ncclCommInitRank(&members_[0].communicator, ranks, id, world.rank()));
}

Communicators::~Communicators() {
  if (aborted_) return;
  for (const Member& member : members_) ncclCommDestroy(member.communicator);
}

void Communicators::abort() noexcept {
  if (std::exchange(aborted_, true)) return;
  for (const Member& member : members_) {
    if (member.communicator != nullptr) ncclCommAbort(member.communicator);
  }
}

namespace {

void launch_one(CollectiveOperation operation, const Extent& extent, int ranks, const Member& member, const float* send,
                float* receive) {
  ncclComm_t comm = member.communicator;
  cudaStream_t stream = member.stream->get();
  const std::size_t sent = extent.sent;
  const std::size_t received = extent.received;
  const std::size_t block = extent.block;
  switch (operation) {
    case CollectiveOperation::all_reduce:
      return GPU_CHECK(ncclAllReduce(send, receive, sent, ncclFloat, ncclSum, comm, stream));
    case CollectiveOperation::all_gather:
      return GPU_CHECK(ncclAllGather(send, receive, sent, ncclFloat, comm, stream));
    case CollectiveOperation::reduce_scatter:
      return GPU_CHECK(ncclReduceScatter(send, receive, received, ncclFloat, ncclSum, comm, stream));
    case CollectiveOperation::broadcast:
      return GPU_CHECK(ncclBroadcast(send, receive, sent, ncclFloat, 0, comm, stream));
    case CollectiveOperation::reduce:
      return GPU_CHECK(ncclReduce(send, receive, sent, ncclFloat, ncclSum, 0, comm, stream));
    case CollectiveOperation::all_to_all:
      for (int peer = 0; peer < ranks; ++peer) {
        const std::size_t offset = static_cast<std::size_t>(peer) * block;
        GPU_CHECK(ncclSend(send + offset, block, ncclFloat, peer, comm, stream));
        GPU_CHECK(ncclRecv(receive + offset, block, ncclFloat, peer, comm, stream));
      }
      return;
    case CollectiveOperation::send_receive:
      GPU_CHECK(ncclSend(send, sent, ncclFloat, (member.rank + 1) % ranks, comm, stream));
      GPU_CHECK(ncclRecv(receive, received, ncclFloat, (member.rank + ranks - 1) % ranks, comm, stream));
      return;
  }
}

}  // namespace

void Communicators::group(const std::function<void(std::size_t member)>& call) {
  GPU_CHECK(ncclGroupStart());
  try {
    for (std::size_t i = 0; i < members_.size(); ++i) call(i);
  } catch (...) {
    ncclGroupEnd();
    throw;
  }
  GPU_CHECK(ncclGroupEnd());
}

void Communicators::launch(CollectiveOperation operation, const Extent& extent, const std::vector<const float*>& send,
                           const std::vector<float*>& receive) {
  group([&](std::size_t i) { launch_one(operation, extent, ranks_, members_[i], send[i], receive[i]); });
}

void Communicators::all_reduce(const std::vector<float*>& data, std::size_t elements,
                               const std::vector<cudaStream_t>& streams) {
  group([&](std::size_t i) {
    GPU_CHECK(ncclAllReduce(data[i], data[i], elements, ncclFloat, ncclSum, members_[i].communicator, streams[i]));
  });
}

void Communicators::wait() {
  std::vector<cudaStream_t> streams;
  for (const Member& member : members_) streams.push_back(member.stream->get());
  wait(streams);
}

void Communicators::wait(const std::vector<cudaStream_t>& streams) {
  std::size_t idle = 0;
  while (idle < streams.size()) {
    const cudaError_t status = cudaStreamQuery(streams[idle]);
    if (status == cudaSuccess) {
      ++idle;  // streams that are idle stay so: only this thread gives them work
      continue;
    }
    if (status != cudaErrorNotReady) GPU_CHECK(status);
    (void)cudaGetLastError();  // no error, but kept as one: the next launch's check would find it
    throw_if_interrupted();
    for (const Member& member : members_) {
      ncclResult_t error = ncclSuccess;
      GPU_CHECK(ncclCommGetAsyncError(member.communicator, &error));
      if (error == ncclSuccess || error == ncclInProgress) continue;
      abort();
      GPU_CHECK(error);
    }
    sched_yield();
  }
}

#endif

}  // namespace foretrain::gpu
