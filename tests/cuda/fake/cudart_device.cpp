// libcudart.so: devices, memory, errors, and how kernels are known and launched.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "tests/cuda/fake/settings.hpp"
#include "tests/cuda/fake/world.hpp"

using fake::World;

namespace {

struct Call {
  dim3 grid, block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local Call configured;

double copy_seconds(std::size_t bytes, cudaMemcpyKind kind) {
  const double bandwidth = kind == cudaMemcpyDeviceToDevice ? 1e12 : 20e9;
  return 2e-6 + static_cast<double>(bytes) / bandwidth;
}

/// Copies small results, which may be read.
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes <= 65536) std::memmove(to, from, bytes);
}

constexpr int clock_khz = 1'980'000;

/// A kernel that spins does so for as long as it is set to, others always for the same time.
cudaError_t launch(const void* function, void** arguments, cudaStream_t stream) {
  FAKE_ENTER;
  const std::string& name = world.kernels[function];
  if (name.find("spin_kernel") == std::string::npos) return world.launch(stream, fake::seconds_of(name));
  const auto cycles = static_cast<double>(*static_cast<const std::int64_t*>(arguments[0]));
  return world.launch(stream, cycles / (1e3 * clock_khz));
}

}  // namespace

extern "C" {

// ---- what nvcc's host code calls ----

void** __cudaRegisterFatBinary(void* /*binary*/) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
void __cudaUnregisterFatBinary(void** /*handle*/) {}
char __cudaInitModule(void** /*handle*/) { return 1; }
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
void __cudaRegisterFunction(void** /*handle*/, const char* host, char* /*device*/, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  World::get().kernels[host] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, struct CUstream_st* stream) {
  configured = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = configured.grid;
  *block = configured.block;
  *shared = configured.shared;
  *static_cast<cudaStream_t*>(stream) = configured.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void** arguments, std::size_t, cudaStream_t stream) {
  return launch(kernel, arguments, stream);
}
cudaError_t cudaLaunchKernel(const void* function, dim3, dim3, void** arguments, std::size_t, cudaStream_t stream) {
  return launch(function, arguments, stream);
}

// ---- errors and versions ----

cudaError_t cudaGetLastError() {
  const std::lock_guard<std::mutex> guard(World::get().mutex);
  const cudaError_t status = World::get().last;
  World::get().last = cudaSuccess;
  return status;
}
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaDriverGetVersion(int* version) {
  const std::string driver = fake::setting("driver");
  *version = driver == "none" ? 0 : driver == "old" ? 11040 : CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

// ---- devices ----

cudaError_t cudaGetDeviceCount(int* count) {
  FAKE_ENTER;
  *count = world.devices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  FAKE_ENTER;
  if (device < 0 || device >= world.devices) return world.fail(cudaErrorInvalidDevice);
  world.device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  FAKE_ENTER;
  *device = world.device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  FAKE_ENTER;
  if (device < 0 || device >= world.devices) return world.fail(cudaErrorInvalidDevice);
  const int capability = static_cast<int>(fake::number("capability", 90));
  const std::map<cudaDeviceAttr, int> values = {{cudaDevAttrMultiProcessorCount, 132},
                                                {cudaDevAttrClockRate, clock_khz},
                                                {cudaDevAttrMemoryClockRate, 2'619'000},
                                                {cudaDevAttrGlobalMemoryBusWidth, 5120},
                                                {cudaDevAttrL2CacheSize, 52'428'800},
                                                {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 233'472},
                                                {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
                                                {cudaDevAttrAsyncEngineCount, 3},
                                                {cudaDevAttrComputeCapabilityMajor, capability / 10},
                                                {cudaDevAttrComputeCapabilityMinor, capability % 10}};
  *value = values.at(attribute);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  FAKE_ENTER;
  if (device < 0 || device >= world.devices) return world.fail(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof(*properties));
  std::strcpy(properties->name, "Imaginary GPU");
  properties->totalGlobalMem = static_cast<std::size_t>(fake::number("memory", 80'000'000'000));
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  FAKE_ENTER;
  if (device < 0 || device >= world.devices) return world.fail(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", 0x17 + device);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int from, int to) {
  FAKE_ENTER;
  *can = from != to;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  FAKE_ENTER;
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() {
  FAKE_ENTER;
  double ready = world.default_streams[world.device].ready;
  for (const fake::Stream* stream : world.streams) ready = std::max(ready, stream->ready);
  world.wait_until(ready);
  return cudaSuccess;
}

// ---- memory ----

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  FAKE_ENTER;
  return world.allocate(pointer, bytes);
}
cudaError_t cudaFree(void* pointer) {
  World& world = World::get();
  const std::lock_guard<std::mutex> guard(world.mutex);
  return world.release(pointer);
}
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  FAKE_ENTER;
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *pointer == nullptr ? world.fail(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) { return cudaMallocHost(pointer, bytes); }
cudaError_t cudaFreeHost(void* pointer) {
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  FAKE_ENTER;
  *total = static_cast<std::size_t>(fake::number("memory", 80'000'000'000));
  *free = *total - world.used[world.device];
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  FAKE_ENTER;
  copy_bytes(to, from, bytes);
  return world.launch(stream, copy_seconds(bytes, kind));
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  FAKE_ENTER;
  copy_bytes(to, from, bytes);
  world.work(nullptr, copy_seconds(bytes, kind));
  world.wait_until(world.stream(nullptr).ready);
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, cudaStream_t stream) {
  FAKE_ENTER;
  copy_bytes(to, from, bytes);
  return world.launch(stream, 2e-6 + static_cast<double>(bytes) / 300e9);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  FAKE_ENTER;
  if (bytes <= 65536) std::memset(memory, value, bytes);
  world.work(stream, 2e-6 + static_cast<double>(bytes) / 2e12);
  return cudaSuccess;
}

}  // extern "C"
