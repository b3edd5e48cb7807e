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

/// The operating system's description, corrected and completed by measurements (detect_figures.hpp).
struct DetectedCpu {
  std::string name;      ///< "model name" of /proc/cpuinfo
  std::string identity;  ///< "GenuineIntel 6 143": vendor, family, model
  bool virtualised = false;
  int processors = 1;  ///< as the operating system counts them
  int threads_per_core = 1;
  int vector_bytes = 16;
  int multiply_adds = 1;                        ///< vectors a cycle, as the flags suggest
  Hertz clock{};                                ///< of a busy core; nothing tells it
  std::vector<DetectedCache> caches;            ///< by level; empty where nothing is told
  std::map<std::string, std::string> measured;  ///< method, by key of the hardware file

  /// Null where nothing is told of that level.
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

}  // namespace foretrain
