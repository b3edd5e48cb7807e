// This machine's description, as the operating system tells it, and what it cannot tell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/hardware/cluster.hpp"

namespace foretrain {

/// One data or unified cache of /sys/devices/system/cpu/cpu0/cache.
struct DetectedCache {
  int level = 0;
  Bytes size;
  int ways = 0;
  int shared_by = 1;  ///< processors of the list, hyperthreads included
};

struct DetectedCpu {
  std::string name;      ///< "model name" of /proc/cpuinfo
  std::string identity;  ///< "GenuineIntel 6 143": vendor, family, model
  bool virtualised = false;
  int processors = 1;  ///< as the operating system counts them
  int threads_per_core = 1;
  int vector_bytes = 16;
  int multiply_adds = 1;              ///< vectors a cycle, as the flags suggest
  std::vector<DetectedCache> caches;  ///< by level; empty where nothing is told
};

/// "48K", "300 MiB": sizes as sysfs writes them. Zero for anything else.
Bytes parse_cache_size(const std::string& text);
/// Processors of a list such as "0-3,8": 5.
int count_of_list(const std::string& text);
/// From the text of /proc/cpuinfo.
DetectedCpu parse_cpuinfo(const std::string& text);
/// From a folder like /sys/devices/system/cpu/cpu0/cache; what is missing is left out.
std::vector<DetectedCache> read_caches(const std::filesystem::path& folder);

/// What was measured because nothing tells it. Zero: not measured.
struct MeasuredBasics {
  Hertz clock;               ///< of a busy core, from a chain of additions
  Bytes shared_cache{};      ///< of the last cache, what this machine gets of it
  Seconds residence{};       ///< CacheLevel::residence of the last cache, where other virtual machines fill it
  int threads_per_core = 0;  ///< as two threads at work show, not as the operating system is told
  int multiply_adds = 0;     ///< vectors a cycle, as a loop in registers shows
};

/// A node of one processor with one process in the accelerator's place, which every prediction about the host accepts:
/// sizes and ways are detected, latencies and bandwidths those of the processor's microarchitecture
/// (scenarios/hardware/processors.yaml). Text of a hardware file; every figure states where it comes from.
std::string hardware_file(const DetectedCpu& cpu, const MeasuredBasics& measured, Bytes memory);

/// This machine now. Measures clock and vector units and, in a virtual machine and where `caches` matter, whether
/// processors share a core and how long the last cache keeps this machine's data (seconds).
std::string detect_hardware_file(bool caches = true);
/// The node that such a file describes. Throws ScenarioError.
Node node_of_hardware_file(const std::string& text);

}  // namespace foretrain
