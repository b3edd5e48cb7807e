#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/cuda/streams/streams_state.hpp"

namespace streams {

State& state() {
  static State the_state;
  return the_state;
}

void reset(int devices, std::uint64_t seed) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.devices = devices;
  s.random.seed(seed);
  s.corrupts = false;
  s.communicators = s.aborted = 0;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(state().mutex);
  reinterpret_cast<Stream*>(stream)->queue.push_back({[] { return true; }, std::move(work)});
}

void corrupt_nccl(bool corrupts) { state().corrupts = corrupts; }
int communicators() { return state().communicators; }
int aborted() { return state().aborted; }
std::size_t allocated() {
  std::size_t bytes = 0;
  for (const auto& [address, size] : state().memory) bytes += size;
  return bytes;
}

bool step() {
  State& s = state();
  std::vector<Stream*> able;
  for (Stream* stream : s.streams) {
    if (!stream->queue.empty() && stream->queue.front().ready()) able.push_back(stream);
  }
  if (able.empty()) return false;
  Stream* chosen = able[s.random() % able.size()];
  const Work work = chosen->queue.front();
  chosen->queue.pop_front();
  s.clock += 1e-6;
  work.run();
  return true;
}

}  // namespace streams

namespace {

using streams::state;
thread_local int current = 0;

streams::Stream* of(cudaStream_t stream) { return reinterpret_cast<streams::Stream*>(stream); }
streams::Event* of(cudaEvent_t event) { return reinterpret_cast<streams::Event*>(event); }

cudaError_t give(void** address, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*address, 0x7f, bytes);
  state().memory[*address] = bytes;
  return cudaSuccess;
}

cudaError_t take_back(void* address) {
  const std::lock_guard lock(state().mutex);
  if (address == nullptr) return cudaSuccess;
  if (state().memory.erase(address) == 0) return cudaErrorInvalidValue;
  std::free(address);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) { return give(address, bytes); }
cudaError_t cudaFree(void* address) { return take_back(address); }
cudaError_t cudaMallocHost(void** address, std::size_t bytes) { return give(address, bytes); }
cudaError_t cudaFreeHost(void* address) { return take_back(address); }
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  *free_bytes = *total = std::size_t{1} << 20;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = state().devices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= state().devices) return cudaErrorInvalidDevice;
  current = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr /*attribute*/, int /*device*/) {
  *value = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr /*which*/, int /*from*/, int /*to*/) {
  *value = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int from, int to) {
  *can = from != to;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int /*peer*/, unsigned /*flags*/) { return cudaSuccess; }
cudaError_t cudaDeviceDisablePeerAccess(int /*peer*/) { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t status) { return status == cudaSuccess ? "no error" : "an error"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cublasLtGetStatusString(cublasStatus_t /*status*/) { return "an error"; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  const std::lock_guard lock(state().mutex);
  auto* made = new streams::Stream{.device = current, .queue = {}};
  state().streams.insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(state().mutex);
  if (state().streams.erase(of(stream)) == 0) return cudaErrorInvalidResourceHandle;
  delete of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(state().mutex);
  if (!of(stream)->queue.empty()) streams::step();
  return of(stream)->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(state().mutex);
  while (!of(stream)->queue.empty()) {
    if (!streams::step()) return cudaErrorLaunchTimeout;  // a deadlock
  }
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  const std::lock_guard lock(state().mutex);
  auto* made = new streams::Event;
  state().events.insert(made);
  *event = reinterpret_cast<cudaEvent_t>(made);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(state().mutex);
  if (state().events.erase(of(event)) == 0) return cudaErrorInvalidResourceHandle;
  delete of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(state().mutex);
  streams::Event* e = of(event);
  const std::uint64_t number = ++e->recorded;
  of(stream)->queue.push_back({[] { return true; },
                               [e, number] {
                                 e->happened = std::max(e->happened, number);
                                 e->time = state().clock;
                               }});
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const std::lock_guard lock(state().mutex);
  streams::Event* e = of(event);
  // As CUDA does: of the latest record so far; nothing to wait for where there is none.
  of(stream)->queue.push_back({[e, number = e->recorded] { return e->happened >= number; }, [] {}});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(state().mutex);
  if (of(event)->happened < of(event)->recorded) streams::step();
  return of(event)->happened < of(event)->recorded ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(state().mutex);
  while (of(event)->happened < of(event)->recorded) {
    if (!streams::step()) return cudaErrorLaunchTimeout;
  }
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = static_cast<float>((of(end)->time - of(start)->time) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  streams::enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  streams::enqueue(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  streams::enqueue(stream, [=] { function(argument); });
  return cudaSuccess;
}

}  // extern "C"
