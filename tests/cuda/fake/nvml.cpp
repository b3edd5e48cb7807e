// libnvidia-ml.so.1: the same answers for every GPU.
#include <time.h>

#include <cstring>

#include "tests/cuda/fake/settings.hpp"
#include "validate/cuda/core/nvml_abi.hpp"

using namespace foretrain::gpu::nvml;

namespace {

double watched_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

}  // namespace

extern "C" {

#define ANSWERS(name, type, value) \
  int name(Device, type* answer) { \
    *answer = value;               \
    return success;                \
  }

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
ANSWERS(nvmlDeviceGetTotalEnergyConsumption, unsigned long long,
        static_cast<unsigned long long>(612.3 * watched_milliseconds()))
ANSWERS(nvmlDeviceGetEnforcedPowerLimit, unsigned, 700'000)
ANSWERS(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, 700'000)
ANSWERS(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, fake::setting("throttle") == "1" ? 0x24 : 0x4)
ANSWERS(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 5)
ANSWERS(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 16)
int nvmlDeviceGetNvLinkState(Device, unsigned link, int* active) {
  *active = link < 18 && fake::number("devices", 1) > 1;
  return success;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device, unsigned, PciInfo* peer) {
  std::memset(peer, 0, sizeof(*peer));
  std::strcpy(peer->bus_id, "00000000:C0:00.0");  // a switch
  return success;
}
int nvmlDeviceGetComputeRunningProcesses_v3(Device, unsigned* count, ProcessInfo* processes) {
  const bool others = fake::setting("others") == "1" && *count > 0;
  if (others) processes[0] = {.pid = 4242, .memory = 1'000'000, .gpu_instance = 0, .compute_instance = 0};
  *count = others ? 1 : 0;
  return success;
}

}  // extern "C"
