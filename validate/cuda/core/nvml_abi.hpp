// The used part of NVML's binary interface, so that the program builds and starts without it. From nvml.h of CUDA 12
// (NVML API Reference Guide): numbers and layouts there do not change between versions of a function's name.
#pragma once

namespace foretrain::gpu::nvml {

constexpr int success = 0;            // NVML_SUCCESS
constexpr int clock_sm = 1;           // NVML_CLOCK_SM
constexpr int clock_memory = 2;       // NVML_CLOCK_MEM
constexpr int uncorrected = 1;        // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int since_driver_load = 0;  // NVML_VOLATILE_ECC
constexpr unsigned most_links = 18;   // NVML_NVLINK_MAX_LINKS

using Device = struct nvmlDevice_st*;

/// nvmlPciInfo_t
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

/// nvmlMemory_t
struct MemoryInfo {
  unsigned long long total, free, used;
};

/// nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

}  // namespace foretrain::gpu::nvml
