#include "validate/cuda/core/nvml.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

#include "validate/cuda/core/nvml_abi.hpp"

namespace foretrain::gpu {

using namespace nvml;

/// The functions that this library has; each is asked about before it is called.
struct Nvml::Library {
  void* handle = nullptr;
  bool started = false;

  Function<> init, shutdown;
  Function<char*, unsigned> driver_version;
  Function<const char*, Device*> device_of;
  Function<Device, int, unsigned*> clock, max_clock;
  Function<Device, unsigned*> power_limit, default_power_limit, max_pcie_generation, max_pcie_width;
  Function<Device, unsigned long long*> clock_reasons, energy;
  Function<Device, int*, int*> ecc;
  Function<Device, unsigned*, unsigned*> mig;
  Function<Device, MemoryInfo*> memory;
  Function<Device, int*> persistence;
  Function<Device, int, int, unsigned long long*> ecc_errors;
  Function<Device, unsigned, int*> link_state;
  Function<Device, unsigned, PciInfo*> link_peer;
  Function<Device, unsigned*, ProcessInfo*> processes;
  Function<Device, Device, int*> common_ancestor;

  Library();
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <typename F>
  void find(F& function, const char* name, const char* older = nullptr) const {
    void* symbol = dlsym(handle, name);
    if (symbol == nullptr && older != nullptr) symbol = dlsym(handle, older);
    function = reinterpret_cast<F>(symbol);
  }
  [[nodiscard]] Device device(const std::string& bus_id) const {
    Device found = nullptr;
    return device_of != nullptr && device_of(bus_id.c_str(), &found) == success ? found : nullptr;
  }
};

namespace {

template <typename Value, typename Function, typename... Arguments>
std::optional<Value> ask(Function function, Device device, Arguments... arguments) {
  Value value{};
  if (function == nullptr || function(device, arguments..., &value) != success) return std::nullopt;
  return value;
}

std::optional<double> scaled(std::optional<unsigned> value, double unit) {
  if (!value) return std::nullopt;
  return *value * unit;
}

std::optional<int> integer(std::optional<unsigned> value) {
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

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

/// The kernel knows the slot's processor without NVML.
std::optional<int> numa_node_of(std::string bus_id) {
  std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(), [](unsigned char c) { return std::tolower(c); });
  std::ifstream in("/sys/bus/pci/devices/" + bus_id + "/numa_node");
  int node = -1;
  if (!(in >> node) || node < 0) return std::nullopt;
  return node;
}

}  // namespace

Nvml::Library::Library() : handle(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (handle == nullptr) return;
  find(init, "nvmlInit_v2");
  find(shutdown, "nvmlShutdown");
  find(driver_version, "nvmlSystemGetDriverVersion");
  find(device_of, "nvmlDeviceGetHandleByPciBusId_v2");
  find(clock, "nvmlDeviceGetClockInfo");
  find(max_clock, "nvmlDeviceGetMaxClockInfo");
  find(energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  find(default_power_limit, "nvmlDeviceGetPowerManagementDefaultLimit");
  find(max_pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  find(max_pcie_width, "nvmlDeviceGetMaxPcieLinkWidth");
  find(clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(ecc, "nvmlDeviceGetEccMode");
  find(mig, "nvmlDeviceGetMigMode");
  find(memory, "nvmlDeviceGetMemoryInfo");
  find(persistence, "nvmlDeviceGetPersistenceMode");
  find(ecc_errors, "nvmlDeviceGetTotalEccErrors");
  find(link_state, "nvmlDeviceGetNvLinkState");
  find(link_peer, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  find(processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  find(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor");
  started = init != nullptr && init() == success;
}

Nvml::Library::~Library() {
  if (started && shutdown != nullptr) shutdown();
  if (handle != nullptr) dlclose(handle);
}

Nvml::Nvml() : library_(std::make_unique<Library>()) {}
Nvml::~Nvml() = default;

bool Nvml::available() const { return library_->started; }

std::optional<DeviceState> Nvml::state(const std::string& bus_id) const {
  const Device device = available() ? library_->device(bus_id) : nullptr;
  if (device == nullptr) return std::nullopt;
  const Library& nvml = *library_;
  DeviceState state;
  state.sm_mhz = ask<unsigned>(nvml.clock, device, clock_sm).value_or(0);
  state.throttle = words_of(ask<unsigned long long>(nvml.clock_reasons, device).value_or(0));
  return state;
}

std::optional<double> Nvml::energy(const std::string& bus_id) const {
  const Device device = available() ? library_->device(bus_id) : nullptr;
  if (device == nullptr) return std::nullopt;
  const auto millijoules = ask<unsigned long long>(library_->energy, device);
  if (!millijoules) return std::nullopt;
  return static_cast<double>(*millijoules) * 1e-3;
}

NvmlDescription Nvml::describe(const std::string& bus_id) const {
  NvmlDescription out;
  out.numa_node = numa_node_of(bus_id);
  if (!available()) return out;
  const Library& nvml = *library_;
  std::array<char, 96> version{};
  if (nvml.driver_version != nullptr && nvml.driver_version(version.data(), version.size()) == success) {
    out.driver = version.data();
  }
  const Device device = nvml.device(bus_id);
  if (device == nullptr) return out;
  out.power_limit_w = scaled(ask<unsigned>(nvml.power_limit, device), 1e-3);
  out.default_power_limit_w = scaled(ask<unsigned>(nvml.default_power_limit, device), 1e-3);
  out.max_sm_mhz = scaled(ask<unsigned>(nvml.max_clock, device, clock_sm), 1.0);
  out.max_memory_mhz = scaled(ask<unsigned>(nvml.max_clock, device, clock_memory), 1.0);
  out.pcie_generation = integer(ask<unsigned>(nvml.max_pcie_generation, device));
  out.pcie_width = integer(ask<unsigned>(nvml.max_pcie_width, device));
  if (const auto on = ask<int>(nvml.persistence, device)) out.persistence = *on != 0;
  int ecc = 0;
  int pending_ecc = 0;
  if (nvml.ecc != nullptr && nvml.ecc(device, &ecc, &pending_ecc) == success) out.ecc = ecc != 0;
  unsigned mig = 0;
  unsigned pending_mig = 0;
  if (nvml.mig != nullptr && nvml.mig(device, &mig, &pending_mig) == success) out.mig = mig != 0;
  if (const auto memory = ask<MemoryInfo>(nvml.memory, device)) {
    out.board_memory_bytes = static_cast<double>(memory->total);
  }
  if (const auto errors = ask<unsigned long long>(nvml.ecc_errors, device, uncorrected, since_driver_load)) {
    out.uncorrected_ecc_errors = static_cast<long>(*errors);
  }
  for (unsigned link = 0; link < most_links; ++link) {
    if (ask<int>(nvml.link_state, device, link).value_or(0) == 0) continue;
    ++out.nvlinks;
    const auto peer = ask<PciInfo>(nvml.link_peer, device, link);
    out.nvlink_peers.emplace_back(peer ? peer->bus_id : "");
  }
  std::array<ProcessInfo, 64> processes{};
  auto count = static_cast<unsigned>(processes.size());
  if (nvml.processes != nullptr && nvml.processes(device, &count, processes.data()) == success) {
    for (unsigned i = 0; i < std::min<unsigned>(count, processes.size()); ++i) {
      if (processes[i].pid != static_cast<unsigned>(getpid())) {
        out.other_processes.push_back(static_cast<int>(processes[i].pid));
      }
    }
  }
  return out;
}

std::string Nvml::pcie_path(const std::string& from, const std::string& to) const {
  if (!available() || library_->common_ancestor == nullptr) return "";
  const Device first = library_->device(from);
  const Device second = library_->device(to);
  int level = 0;
  if (first == nullptr || second == nullptr || library_->common_ancestor(first, second, &level) != success) return "";
  if (level >= 50) return "SYS";
  if (level >= 40) return "NODE";
  if (level >= 30) return "PHB";
  if (level >= 20) return "PXB";
  return "PIX";
}

}  // namespace foretrain::gpu
