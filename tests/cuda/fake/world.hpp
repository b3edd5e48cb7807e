// A machine with GPUs that compute nothing: streams and events on a virtual clock, memory that is only counted.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <set>
#include <string>

namespace fake {

struct Graph {
  double seconds = 0.0;  ///< of its nodes one after the other
};

struct Stream {
  int device = 0;
  double ready = 0.0;  ///< when all that was put on it is done
  int capture = 0;     ///< number of the graph that is recorded; 0 for none
};

struct Event {
  double time = 0.0;
  int capture = 0;
};

class World {
 public:
  static World& get();

  /// Every call begins with this: the status that it has to return at once, or success.
  cudaError_t enter();
  cudaError_t fail(cudaError_t status);
  /// Puts work on a stream (null: the device's default stream).
  void work(cudaStream_t stream, double seconds);
  /// Work that counts as a launch, where faults happen.
  cudaError_t launch(cudaStream_t stream, double seconds);
  /// The host waits until this time, or, once the fault is due, for ever.
  void wait_until(double time);
  Stream& stream(cudaStream_t handle);

  /// Memory of the current device that is only address space.
  cudaError_t allocate(void** pointer, std::size_t bytes);
  cudaError_t release(void* pointer);

  std::mutex mutex;
  int devices, device = 0;
  double host = 0.0;  ///< the host's virtual time
  std::set<Stream*> streams;
  std::map<int, Stream> default_streams;
  std::map<int, Graph> graphs;
  int last_graph = 0;
  std::map<const void*, std::string> kernels;  ///< name by the host's stub
  std::map<int, std::size_t> used;             ///< bytes by device
  cudaError_t last = cudaSuccess;

 private:
  World();
  /// Whether the fault of this name is due now.
  bool due(const char* name);

  struct Block {
    std::size_t bytes;
    int device;
  };
  double call_s_;  ///< that each call takes on the host
  std::map<void*, Block> blocks_;
  std::size_t capacity_;
  long launches_ = 0;
  cudaError_t sticky_ = cudaSuccess;
};

/// Begin of every call: the world, which no other thread changes at the same time.
#define FAKE_ENTER                                      \
  fake::World& world = fake::World::get();              \
  const std::lock_guard<std::mutex> guard(world.mutex); \
  if (const cudaError_t status = world.enter(); status != cudaSuccess) return status

/// Between 20 and 83 us: always the same for the same kernel, wherever it was built.
double seconds_of(const std::string& kernel);

}  // namespace fake
