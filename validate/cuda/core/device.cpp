#include "validate/cuda/core/device.hpp"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace foretrain::gpu {

bool Event::happened() const {
  const cudaError_t status = cudaEventQuery(event_);
  if (status == cudaErrorNotReady) {
    (void)cudaGetLastError();  // no error, but kept as one: the next look at it would find it
    return false;
  }
  GPU_CHECK(status);
  return true;
}

double elapsed(const Event& start, const Event& end) {
  float milliseconds = 0.0F;
  GPU_CHECK(cudaEventElapsedTime(&milliseconds, start.get(), end.get()));
  return static_cast<double>(milliseconds) * 1e-3;
}

namespace {

/// Weyl's sequence, mixed once: not to be reported from noise by hardware that compresses, and as fast as the memory.
void fill_random(void* data, std::size_t bytes) {
  std::uint64_t state = 1;
  auto* at = static_cast<unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; i += sizeof(state)) {
    state += 0x9e3779b97f4a7c15ULL;
    const std::uint64_t word = (state ^ (state >> 32)) * 0xd6e8feb86659fd93ULL;
    std::memcpy(at + i, &word, std::min(sizeof(word), bytes - i));
  }
}

}  // namespace

HostBuffer::HostBuffer(std::size_t bytes, bool pinned) : size_(bytes), pinned_(pinned) {
  if (pinned) {
    GPU_CHECK(cudaMallocHost(&data_, bytes));
  } else {
    data_ = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (data_ == nullptr) throw GpuError(Fault::out_of_memory, "the host has no memory left for a buffer");
  }
  fill_random(data_, bytes);
}
HostBuffer::~HostBuffer() {
  if (pinned_) {
    cudaFreeHost(data_);
  } else {
    std::free(data_);
  }
}

int current_device() {
  int device = 0;
  GPU_CHECK(cudaGetDevice(&device));
  return device;
}

int device_attribute(cudaDeviceAttr which) { return device_attribute(which, current_device()); }

int device_attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  GPU_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

std::size_t l2_bytes() { return static_cast<std::size_t>(std::max(0, device_attribute(cudaDevAttrL2CacheSize))); }

int rotation_for(std::size_t bytes_per_turn) {
  constexpr int most_rotation = 64;
  const std::size_t bytes = std::max<std::size_t>(bytes_per_turn, 1);
  const std::size_t turns = is_cold(bytes, most_rotation) ? 4 * l2_bytes() / bytes + 1 : l2_bytes() / 4 / bytes;
  return static_cast<int>(std::clamp<std::size_t>(turns, 1, most_rotation));
}

bool is_cold(std::size_t bytes_per_turn, int rotation) {
  return static_cast<std::size_t>(rotation) * bytes_per_turn > 2 * l2_bytes();
}

std::string bus_id_of(int device) {
  char text[32] = "";
  GPU_CHECK(cudaDeviceGetPCIBusId(text, sizeof(text), device));
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void bind_to_node_of(const std::string& bus_id) {
  std::ifstream in("/sys/bus/pci/devices/" + bus_id + "/local_cpulist");  // "0-15,32-47"
  cpu_set_t near;
  CPU_ZERO(&near);
  for (int first = 0; in >> first;) {
    int last = first;
    if (in.peek() == '-') in.get() && in >> last;
    for (int cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &near);
    if (in.get() != ',') break;
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  CPU_AND(&near, &near, &allowed);
  if (CPU_COUNT(&near) > 0) sched_setaffinity(0, sizeof(near), &near);
}

int visible_devices() {
  int count = 0;
  GPU_CHECK(cudaGetDeviceCount(&count));
  return count;
}

std::size_t usable_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  GPU_CHECK(cudaMemGetInfo(&free, &total));
  return free / 10 * 9;
}

}  // namespace foretrain::gpu
