#include "tests/cuda/fake/world.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "tests/cuda/fake/settings.hpp"

namespace fake {

World& World::get() {
  static World* world = new World;  // never destroyed: libraries call until the very end of the process
  return *world;
}

World::World()
    : devices(static_cast<int>(number("devices", 1))),
      call_s_(static_cast<double>(number("call_us", 1)) * 1e-6),
      capacity_(static_cast<std::size_t>(number("memory", 80'000'000'000))) {}

bool World::due(const char* name) {
  const long at = number(name, 0);
  if (at == 0 || launches_ < at) return false;
  const std::string once = setting("once");
  if (once.empty()) return true;
  const int file = open(once.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (file >= 0) close(file);
  return file >= 0;
}

cudaError_t World::fail(cudaError_t status) { return last = status; }

cudaError_t World::enter() {
  host += call_s_;
  const std::string driver = setting("driver");
  if (!driver.empty()) return fail(cudaErrorInsufficientDriver);
  if (devices == 0) return fail(cudaErrorNoDevice);
  return sticky_ == cudaSuccess ? cudaSuccess : fail(sticky_);
}

Stream& World::stream(cudaStream_t handle) {
  if (handle == nullptr) return default_streams[device];
  return *reinterpret_cast<Stream*>(handle);
}

void World::work(cudaStream_t handle, double seconds) {
  Stream& on = stream(handle);
  if (const auto graph = graphs.find(on.capture); graph != graphs.end()) {
    graph->second.seconds += seconds;
    return;
  }
  on.ready = std::max(on.ready, host) + seconds;
}

cudaError_t World::launch(cudaStream_t handle, double seconds) {
  ++launches_;
  const long away = number("away_at", 0);
  if (away > 0 && launches_ >= away && launches_ < away + number("away_for", 0)) host += 30e-3;
  if (sticky_ == cudaSuccess && due("ecc_at")) sticky_ = cudaErrorECCUncorrectable;
  if (sticky_ != cudaSuccess) return fail(sticky_);
  if (due("crash_at")) raise(SIGSEGV);
  work(handle, seconds);
  return cudaSuccess;
}

void World::wait_until(double time) {
  if (due("hang_at")) {
    for (;;) pause();
  }
  if (const long milliseconds = number("slow", 0); milliseconds > 0) usleep(static_cast<unsigned>(milliseconds) * 1000);
  host = std::max(host, time);
}

cudaError_t World::allocate(void** pointer, std::size_t bytes) {
  if (setting("busy") == "1") return fail(cudaErrorDevicesUnavailable);
  if (bytes > capacity_ || used[device] > capacity_ - bytes) return fail(cudaErrorMemoryAllocation);
  void* memory = mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return fail(cudaErrorMemoryAllocation);
  blocks_[memory] = {bytes, device};
  used[device] += bytes;
  *pointer = memory;
  return cudaSuccess;
}

cudaError_t World::release(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  const auto found = blocks_.find(pointer);
  if (found == blocks_.end()) return fail(cudaErrorInvalidValue);
  used[found->second.device] -= found->second.bytes;
  munmap(pointer, std::max<std::size_t>(found->second.bytes, 1));
  blocks_.erase(found);
  return cudaSuccess;
}

double seconds_of(const std::string& kernel) {
  // nvcc puts a hash of the source's path into the names of what has internal linkage: "..._cu_fae89ddc". A kernel
  // takes the same time wherever it was built.
  const std::size_t source = kernel.find("_cu_");
  const std::string name = source == std::string::npos ? kernel : kernel.substr(std::min(kernel.size(), source + 12));
  // Longer than the calls that launch it, so that the device is measured and not its host.
  return 20e-6 + 1e-6 * static_cast<double>(std::hash<std::string>()(name) % 64);
}

}  // namespace fake
