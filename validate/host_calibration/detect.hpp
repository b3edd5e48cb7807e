// This machine's description, as the operating system tells it, and what it cannot tell.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/hardware/cluster.hpp"

namespace foretrain {

/// One data or unified cache of /sys/devices/system/cpu/cpu0/cache.
struct DetectedCache {
  int level = 0;
  Bytes size;
  int ways = 0;
  int shared_by = 1;    ///< processors of the list, hyperthreads included
  Seconds residence{};  ///< CacheLevel::residence, where other virtual machines fill it; zero: not measured
};

/// The operating system's description, corrected and completed by measurements (below).
struct DetectedCpu {
  std::string name;      ///< "model name" of /proc/cpuinfo
  std::string identity;  ///< "GenuineIntel 6 143": vendor, family, model
  bool virtualised = false;
  int processors = 1;  ///< as the operating system counts them
  int threads_per_core = 1;
  int vector_bytes = 16;
  int multiply_adds = 1;                        ///< vectors a cycle, as the flags suggest
  Hertz clock{};                                ///< of a busy core; nothing tells it
  std::vector<DetectedCache> caches;            ///< by level; empty where nothing is reported
  std::map<std::string, std::string> measured;  ///< method, by key of the hardware file

  /// Null where nothing is reported of that level.
  DetectedCache* cache(int level);
};

/// From the text of /proc/cpuinfo.
DetectedCpu parse_cpuinfo(const std::string& text);
/// From a folder like /sys/devices/system/cpu/cpu0/cache; what is missing is left out.
std::vector<DetectedCache> read_caches(const std::filesystem::path& folder);

/// A node of one processor with one process in the accelerator's place, which every prediction about the host accepts:
/// sizes and ways are detected, latencies and bandwidths those of the processor's microarchitecture
/// (scenarios/hardware/processors). Text of a hardware file; every figure states where it comes from.
std::string hardware_file(const DetectedCpu& cpu, Bytes memory);

/// This machine now; `caches`: whether somebody asks for them, which takes seconds in a virtual machine.
std::string detect_hardware_file(bool caches = true);
/// The node that such a file describes. Throws ScenarioError.
Node node_of_hardware_file(const std::string& text);

// Measured properties that the operating system does not report, or reports wrongly in a virtual machine. Each corrects
// the description of the processor and says how it knows.

/// Measures the speed of a core: its clock and its vector units.
void measure_cores(DetectedCpu& cpu);
/// Measures the number of processors per core: virtual machines often claim that each is a core.
void measure_threads(DetectedCpu& cpu);
/// For how long a last cache that other virtual machines fill as well keeps data.
void measure_last_cache(DetectedCpu& cpu);

/// A load's time from data that no load had asked for during `age`.
struct AgedLoad {
  Seconds age, latency;
};

/// The age at which loads take half-way from the youngest ones' time to `outside`, which is what a load from memory
/// takes: between the last age that is still below and the next one. Zero where even the oldest is below: no other
/// machine fills the cache. `loads` from young to old.
Seconds half_way(const std::vector<AgedLoad>& loads, Seconds outside);

}  // namespace foretrain
