#include "validate/cuda/core/nvml.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "validate/cuda/core/nvml_abi.hpp"

namespace foretrain::gpu {

using namespace nvml;

struct Nvml::Library {
  void* const handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  const bool started = call("nvmlInit_v2");

  Library() = default;
  ~Library() {
    if (started) call("nvmlShutdown");
    if (handle != nullptr) dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Calls a function by its name; false where this library has none of it, or it fails.
  template <typename... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    void* const symbol = handle == nullptr ? nullptr : dlsym(handle, name);
    return symbol != nullptr && reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...) == success;
  }
  /// The value that a function stores at its last argument.
  template <typename Value, typename... Arguments>
  std::optional<Value> ask(const char* name, Arguments... arguments) const {
    Value value{};
    if (!call(name, arguments..., &value)) return std::nullopt;
    return value;
  }
  template <typename... Arguments>
  std::optional<double> number(double unit, const char* name, Arguments... arguments) const {
    const auto value = ask<unsigned>(name, arguments...);
    return value ? std::optional(*value * unit) : std::nullopt;
  }
  /// The first of two values: the mode that holds, and the one after the next boot.
  template <typename Value>
  std::optional<bool> mode(const char* name, Device device) const {
    Value current{}, pending{};
    return call(name, device, &current, &pending) ? std::optional(current != 0) : std::nullopt;
  }
  /// Null where there is none.
  [[nodiscard]] Device device(const std::string& bus_id) const {
    return started ? ask<Device>("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str()).value_or(nullptr) : nullptr;
  }
};

namespace {

/// Reasons that say that a GPU could run faster; idleness and the clocks that a user set are none of them.
std::vector<std::string> words_of(unsigned long long reasons) {
  struct Reason {
    unsigned long long bit;
    const char* word;
  };
  static constexpr Reason table[] = {{0x4, "power"},
                                     {0x8, "hardware"},
                                     {0x10, "sync_boost"},
                                     {0x20, "thermal"},
                                     {0x40, "hardware_thermal"},
                                     {0x80, "power_brake"},
                                     {0x2, "application_clocks"}};
  std::vector<std::string> words;
  for (const Reason& reason : table) {
    if ((reasons & reason.bit) != 0) words.emplace_back(reason.word);
  }
  return words;
}

}  // namespace

Nvml::Nvml() : library_(std::make_unique<Library>()) {}
Nvml::~Nvml() = default;

std::optional<DeviceState> Nvml::state(const std::string& bus_id) const {
  const Device device = library_->device(bus_id);
  if (device == nullptr) return std::nullopt;
  auto reasons = library_->ask<unsigned long long>("nvmlDeviceGetCurrentClocksEventReasons", device);
  // Its name before CUDA 12.2.
  if (!reasons) reasons = library_->ask<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons", device);
  const auto megahertz = library_->ask<unsigned>("nvmlDeviceGetClockInfo", device, clock_sm);
  return DeviceState{static_cast<double>(megahertz.value_or(0)), std::nullopt, words_of(reasons.value_or(0))};
}

std::optional<double> Nvml::energy(const std::string& bus_id) const {
  const Device device = library_->device(bus_id);
  if (device == nullptr) return std::nullopt;
  const auto millijoules = library_->ask<unsigned long long>("nvmlDeviceGetTotalEnergyConsumption", device);
  return millijoules ? std::optional(static_cast<double>(*millijoules) * 1e-3) : std::nullopt;
}

NvmlDescription Nvml::describe(const std::string& bus_id) const {
  NvmlDescription out;
  const Library& nvml = *library_;
  const Device device = nvml.device(bus_id);
  if (device == nullptr) return out;
  std::array<char, 96> version{};
  nvml.call("nvmlSystemGetDriverVersion", version.data(), static_cast<unsigned>(version.size()));
  out.driver = version.data();
  out.power_limit_w = nvml.number(1e-3, "nvmlDeviceGetEnforcedPowerLimit", device);
  out.default_power_limit_w = nvml.number(1e-3, "nvmlDeviceGetPowerManagementDefaultLimit", device);
  out.max_sm_hz = nvml.number(1e6, "nvmlDeviceGetMaxClockInfo", device, clock_sm);
  out.max_memory_hz = nvml.number(1e6, "nvmlDeviceGetMaxClockInfo", device, clock_memory);
  out.pcie_generation = nvml.number(1.0, "nvmlDeviceGetMaxPcieLinkGeneration", device);
  out.pcie_width = nvml.number(1.0, "nvmlDeviceGetMaxPcieLinkWidth", device);
  if (const auto on = nvml.ask<int>("nvmlDeviceGetPersistenceMode", device)) out.persistence = *on != 0;
  out.ecc = nvml.mode<int>("nvmlDeviceGetEccMode", device);
  out.mig = nvml.mode<unsigned>("nvmlDeviceGetMigMode", device);
  if (const auto memory = nvml.ask<MemoryInfo>("nvmlDeviceGetMemoryInfo", device)) {
    out.board_memory_bytes = static_cast<double>(memory->total);
  }
  const auto errors =
      nvml.ask<unsigned long long>("nvmlDeviceGetTotalEccErrors", device, uncorrected, since_driver_load);
  out.uncorrected_ecc_errors = errors.value_or(0);
  for (unsigned link = 0; link < most_links; ++link) {
    if (nvml.ask<int>("nvmlDeviceGetNvLinkState", device, link).value_or(0) == 0) continue;
    const auto peer = nvml.ask<PciInfo>("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link);
    std::string& bus = out.nvlink_peers.emplace_back(peer ? peer->bus_id : "");
    std::ranges::transform(bus, bus.begin(), [](unsigned char c) { return std::tolower(c); });
  }
  std::array<ProcessInfo, 64> processes{};
  auto count = static_cast<unsigned>(processes.size());
  if (!nvml.call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, processes.data())) return out;
  for (unsigned i = 0; i < std::min<unsigned>(count, processes.size()); ++i) {
    if (processes[i].pid != static_cast<unsigned>(getpid())) out.other_processes.push_back(processes[i].pid);
  }
  return out;
}

}  // namespace foretrain::gpu
