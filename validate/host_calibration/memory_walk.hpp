// Walks over this machine's memory: chases of pointers, and the parameters that a scenario's `memory_walk` has, run for
// real.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/hardware/cpu.hpp"
#include "model/workload/host_operators.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain {

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* memory) const { munmap(memory, bytes); }
};
using HostMemory = std::unique_ptr<std::byte[], Unmap>;

/// At least `size` bytes at a multiple of 2 MiB, every page written once: in transparent huge pages where the kernel
/// has them, or in none of these. Throws std::bad_alloc.
HostMemory host_memory(std::size_t size, bool huge_pages);

/// A walk in which every load's address is the value of the load before it. Nothing overlaps, so its time over its
/// loads is the latency of the level of the memory hierarchy that holds the working set. One random cycle through all
/// places of the working set (Sattolo's algorithm, fixed seed).
class PointerChase {
 public:
  /// `stride` bytes lie between the places visited, a multiple of 8. Throws std::bad_alloc.
  PointerChase(std::size_t working_set, std::size_t stride, bool huge_pages);

  /// Follows `loads` pointers from where the walk last stood. Returns the thread's time for one load, in seconds.
  double chase(std::int64_t loads);
  /// Of up to a million places: asks for all in the order of the walk without waiting for any, so that the next loads
  /// find what a pass just before them leaves in the caches. At the walk's own pace, other virtual machines might
  /// displace it first.
  void touch() const;
  [[nodiscard]] std::size_t places() const { return places_; }

 private:
  HostMemory memory_;
  std::size_t places_, stride_;
  std::vector<std::uint32_t> order_;  ///< which place follows; empty for very large sets
  void* at_ = nullptr;
};

/// The walk that these parameters ("working_set": "32 KiB", "pattern": "random", …) describe on this processor. Throws
/// ScenarioError as a scenario with them would.
MemoryWalk walk_of(const std::map<std::string, std::string>& parameters, const Cpu& cpu);

/// Repeats the walk; each sample is the time of one access (threads walk at the same time, each over its part). Throws
/// std::invalid_argument for walks that are neither chases nor whole lines in order, or of another socket.
Sampled run_walk(const MemoryWalk& walk, const StoppingRule& rule);

}  // namespace foretrain
