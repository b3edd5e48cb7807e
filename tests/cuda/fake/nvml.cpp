// libnvidia-ml.so.1: the same answers for every GPU.
#include <time.h>

#include <cstring>

#include "tests/cuda/fake/settings.hpp"
#include "validate/cuda/core/nvml_abi.hpp"

using namespace foretrain::gpu::nvml;

extern "C" {

int nvmlInit_v2() { return fake::setting("driver").empty() ? success : 9; }
int nvmlShutdown() { return success; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "580.00", size);
  return success;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  static int gpus[256];
  *device = reinterpret_cast<Device>(&gpus[static_cast<unsigned char>(bus_id[6])]);
  return success;
}
int nvmlDeviceGetClockInfo(Device, int kind, unsigned* megahertz) {
  *megahertz = kind == clock_sm ? 1755 : 2619;
  return success;
}
int nvmlDeviceGetMaxClockInfo(Device, int kind, unsigned* megahertz) {
  *megahertz = kind == clock_sm ? 1980 : 2619;
  return success;
}
int nvmlDeviceGetTotalEnergyConsumption(Device, unsigned long long* millijoules) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  *millijoules = static_cast<unsigned long long>(
      612.3 * (1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec)));
  return success;
}
int nvmlDeviceGetEnforcedPowerLimit(Device, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return success;
}
int nvmlDeviceGetPowerManagementDefaultLimit(Device, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return success;
}
int nvmlDeviceGetCurrentClocksEventReasons(Device, unsigned long long* reasons) {
  *reasons = fake::setting("throttle") == "1" ? 0x24 : 0x4;
  return success;
}
int nvmlDeviceGetMaxPcieLinkGeneration(Device, unsigned* generation) {
  *generation = 5;
  return success;
}
int nvmlDeviceGetMaxPcieLinkWidth(Device, unsigned* width) {
  *width = 16;
  return success;
}
int nvmlDeviceGetEccMode(Device, int* current, int* pending) {
  *current = *pending = 1;
  return success;
}
int nvmlDeviceGetNvLinkState(Device, unsigned link, int* active) {
  *active = link < 18 && fake::number("devices", 1) > 1;
  return success;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device, unsigned, PciInfo* peer) {
  std::memset(peer, 0, sizeof(*peer));
  std::strcpy(peer->bus_id, "00000000:C0:00.0");  // a switch
  return success;
}
int nvmlDeviceGetTotalEccErrors(Device, int, int, unsigned long long* errors) {
  *errors = 0;
  return success;
}
int nvmlDeviceGetComputeRunningProcesses_v3(Device, unsigned* count, ProcessInfo* processes) {
  const bool others = fake::setting("others") == "1" && *count > 0;
  if (others) processes[0] = {.pid = 4242, .memory = 1'000'000, .gpu_instance = 0, .compute_instance = 0};
  *count = others ? 1 : 0;
  return success;
}
int nvmlDeviceGetTopologyCommonAncestor(Device, Device, int* level) {
  *level = 40;
  return success;
}

}  // extern "C"
