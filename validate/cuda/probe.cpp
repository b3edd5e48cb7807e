#include "validate/cuda/probe.hpp"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#ifdef FORETRAIN_HAS_CUDNN
#include <cudnn.h>
#endif
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <fstream>
#include <string>

#include "validate/cuda/collective/nccl.hpp"
#include "validate/cuda/collective/network_cards.hpp"
#include "validate/cuda/core/device.hpp"
#include "validate/measure/json_object.hpp"

namespace foretrain::gpu {

namespace {

/// "13.0"; "" for what was not built in.
struct Versions {
  std::string runtime, driver, cublaslt, cudnn;
};

std::string dotted(std::size_t major, std::size_t minor, std::size_t patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

/// The CUDA version that the driver knows, as CUDART_VERSION counts; 0 without a driver.
int driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

/// 12040 is "12.4".
std::string version_text(int cuda_version) {
  return std::to_string(cuda_version / 1000) + "." + std::to_string(cuda_version % 1000 / 10);
}

Versions library_versions() {
  Versions out;
  int runtime = 0;
  if (cudaRuntimeGetVersion(&runtime) == cudaSuccess) out.runtime = version_text(runtime);
  out.driver = version_text(driver_version());
  const std::size_t cublas = cublasLtGetVersion();  // 120304 is 12.3.4, 130001 is 13.0.1
  out.cublaslt = dotted(cublas / 10000, cublas / 100 % 100, cublas % 100);
#ifdef FORETRAIN_HAS_CUDNN
  const std::size_t cudnn = cudnnGetVersion();  // 90100 is 9.1.0 since version 9, 8907 was 8.9.7
  out.cudnn = cudnn >= 90000 ? dotted(cudnn / 10000, cudnn / 100 % 100, cudnn % 100)
                             : dotted(cudnn / 1000, cudnn / 100 % 10, cudnn % 100);
#endif
  return out;
}

struct Gpu {
  int index = 0;
  std::string name, bus_id;
  NvmlDescription nvml;
};

/// Attributes that came late: nothing where the driver does not know them.
std::optional<int> optional_attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) == cudaSuccess) return value;
  cudaGetLastError();
  return std::nullopt;
}

int device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver || status == cudaErrorStubLibrary) {
    cudaGetLastError();
    const std::string built = version_text(CUDART_VERSION);
    const int driver = driver_version();
    if (driver == 0) {
      throw GpuError(Fault::unavailable, "no NVIDIA driver was found: install one that knows CUDA " + built +
                                             " (nvidia-smi then lists the GPUs)");
    }
    throw GpuError(Fault::unavailable, "the NVIDIA driver is too old: it knows CUDA " + version_text(driver) +
                                           ", and this program was built with " + built +
                                           ": install a newer driver, or build with an older toolkit");
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    throw GpuError(Fault::unavailable, "no GPU is visible: see nvidia-smi, and CUDA_VISIBLE_DEVICES");
  }
  GPU_CHECK(status);
  return count;
}

Gpu gpu_of(int device, const Nvml& nvml) {
  cudaDeviceProp properties{};
  GPU_CHECK(cudaGetDeviceProperties(&properties, device));
  const std::string bus_id = bus_id_of(device);
  return {device, properties.name, bus_id, nvml.describe(bus_id)};
}

std::string json_of(const Gpu& gpu) {
  const int d = gpu.index;
  const NvmlDescription& nvml = gpu.nvml;
  cudaDeviceProp properties{};
  GPU_CHECK(cudaGetDeviceProperties(&properties, d));
  JsonObject out;
  out.number("index", d).text("name", gpu.name).text("bus_id", gpu.bus_id);
  out.text("compute_capability", std::to_string(device_attribute(cudaDevAttrComputeCapabilityMajor, d)) + "." +
                                     std::to_string(device_attribute(cudaDevAttrComputeCapabilityMinor, d)));
  out.number("sms", device_attribute(cudaDevAttrMultiProcessorCount, d));
  out.number("sm_clock_hz", device_attribute(cudaDevAttrClockRate, d) * 1e3);
  out.number("memory_clock_hz", device_attribute(cudaDevAttrMemoryClockRate, d) * 1e3);
  if (nvml.max_sm_mhz) out.number("max_sm_clock_hz", *nvml.max_sm_mhz * 1e6);
  if (nvml.max_memory_mhz) out.number("max_memory_clock_hz", *nvml.max_memory_mhz * 1e6);
  out.number("memory_bytes", static_cast<double>(properties.totalGlobalMem));
  out.number("memory_bus_bits", device_attribute(cudaDevAttrGlobalMemoryBusWidth, d));
  out.number("l2_bytes", device_attribute(cudaDevAttrL2CacheSize, d));
  out.number("shared_memory_per_sm_bytes", device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, d));
  out.number("shared_memory_per_block_bytes", optional_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, d));
  out.number("registers_per_sm", device_attribute(cudaDevAttrMaxRegistersPerMultiprocessor, d));
  out.number("threads_per_sm", device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor, d));
  out.number("copy_engines", device_attribute(cudaDevAttrAsyncEngineCount, d));
  out.flag("integrated", device_attribute(cudaDevAttrIntegrated, d) != 0);
  out.flag("ecc", nvml.ecc ? *nvml.ecc : device_attribute(cudaDevAttrEccEnabled, d) != 0);
  out.flag("mig", nvml.mig).flag("persistence", nvml.persistence);
  out.number("board_memory_bytes", nvml.board_memory_bytes);
  out.number("power_limit_w", nvml.power_limit_w).number("default_power_limit_w", nvml.default_power_limit_w);
  out.number("pcie_generation", nvml.pcie_generation).number("pcie_width", nvml.pcie_width);
  out.number("numa_node", nvml.numa_node).number("nvlinks", nvml.nvlinks);
  out.number("uncorrected_ecc_errors", nvml.uncorrected_ecc_errors);
  return out.str();
}

/// CUDA writes "0000:17:00.0", NVML "00000000:17:00.0", and either may use capitals.
bool same_slot(const std::string& a, const std::string& b) {
  const std::size_t n = std::min(a.size(), b.size());
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  return n > 0 &&
         std::equal(a.end() - static_cast<std::ptrdiff_t>(n), a.end(), b.end() - static_cast<std::ptrdiff_t>(n), same);
}

/// Links that lead straight to the other GPU; where all lead to switches, those that both ends can use.
int links_between(const Gpu& from, const Gpu& to, const std::vector<Gpu>& gpus) {
  int direct = 0;
  bool switched = from.nvml.nvlinks > 0;
  for (const std::string& peer : from.nvml.nvlink_peers) {
    if (same_slot(peer, to.bus_id)) ++direct;
    for (const Gpu& gpu : gpus) switched = switched && !same_slot(peer, gpu.bus_id);
  }
  return switched ? std::min(from.nvml.nvlinks, to.nvml.nvlinks) : direct;
}

std::string json_of_link(const Gpu& from, const Gpu& to, const std::vector<Gpu>& gpus, const Nvml& nvml) {
  int access = 0;
  int rank = 0;
  int atomics = 0;
  GPU_CHECK(cudaDeviceCanAccessPeer(&access, from.index, to.index));
  GPU_CHECK(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, from.index, to.index));
  GPU_CHECK(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from.index, to.index));
  JsonObject out;
  out.number("from", from.index).number("to", to.index).number("nvlinks", links_between(from, to, gpus));
  out.flag("peer_access", access != 0).number("performance_rank", rank).flag("native_atomics", atomics != 0);
  return out.text("pcie_path", nvml.pcie_path(from.bus_id, to.bus_id)).str();
}

std::vector<std::string> warnings_of(const Gpu& gpu) {
  std::vector<std::string> out;
  const std::string who = "GPU " + std::to_string(gpu.index) + " (" + gpu.name + ")";
  if (!gpu.nvml.other_processes.empty()) {
    std::string list;
    for (const int process : gpu.nvml.other_processes) list += (list.empty() ? "" : ", ") + std::to_string(process);
    out.push_back(who + " is in use by " + (gpu.nvml.other_processes.size() > 1 ? "processes " : "process ") + list +
                  ": what is measured beside them is too slow");
  }
  if (gpu.nvml.uncorrected_ecc_errors.value_or(0) > 0) {
    out.push_back(who + " has counted " + std::to_string(*gpu.nvml.uncorrected_ecc_errors) +
                  " uncorrectable memory errors since its driver was loaded: see nvidia-smi -q -d ECC");
  }
  if (gpu.nvml.mig.value_or(false)) out.push_back(who + " is divided by MIG: only the visible instance is measured");
  if (gpu.nvml.persistence && !*gpu.nvml.persistence) {
    out.push_back(who + " is not in persistence mode: each process waits for it to wake (nvidia-smi -pm 1)");
  }
  if (gpu.nvml.power_limit_w && gpu.nvml.default_power_limit_w &&
      *gpu.nvml.power_limit_w < 0.99 * *gpu.nvml.default_power_limit_w) {
    out.push_back(who + " is limited to " + json_number(*gpu.nvml.power_limit_w) + " W of " +
                  json_number(*gpu.nvml.default_power_limit_w) + " W");
  }
  return out;
}

std::string today() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

}  // namespace

Machine probe_machine(const Nvml& nvml, int measured_device) {
  Machine machine;
  machine.gpus = device_count();
  std::vector<Gpu> gpus;
  for (int device = 0; device < machine.gpus; ++device) gpus.push_back(gpu_of(device, nvml));
  std::vector<std::string> descriptions, links;
  for (const Gpu& gpu : gpus) {
    descriptions.push_back(json_of(gpu));
    machine.identity += gpu.name + ", ";
    for (const std::string& warning : warnings_of(gpu)) machine.warnings.push_back(warning);
    for (const Gpu& other : gpus) {
      if (other.index != gpu.index) links.push_back(json_of_link(gpu, other, gpus, nvml));
    }
  }
  const Versions versions = library_versions();
  machine.identity += "driver " + gpus.front().nvml.driver + ", CUDA " + versions.runtime + ", measured on GPU " +
                      std::to_string(measured_device);
  utsname system{};
  uname(&system);
  JsonObject libraries;
  libraries.text("cuda_runtime", versions.runtime).text("cuda_driver", versions.driver);
  libraries.text("cublaslt", versions.cublaslt).text("cudnn", versions.cudnn).text("nccl", nccl_version());
  JsonObject out;
  out.text("date", today()).text("identity", machine.identity).text("kernel", system.release);
  out.text("processor", processor()).text("driver", gpus.front().nvml.driver).raw("versions", libraries.str());
  out.number("gpu_count", machine.gpus)
      .number("measured_device", measured_device)
      .raw("gpus", json_list(descriptions))
      .raw("links", json_list(links));
  std::vector<std::string> cards;
  for (const NetworkCard& card : network_cards()) {
    cards.push_back(JsonObject().text("name", card.name).number("bits_per_second", card.bits_per_second).str());
  }
  out.raw("network_cards", json_list(cards));
  machine.json = out.texts("warnings", machine.warnings).str();
  return machine;
}

void try_device(int device) {
  const int count = device_count();
  if (device >= count) {
    throw GpuError(Fault::unavailable, "there is no GPU " + std::to_string(device) + ": " + std::to_string(count) +
                                           (count == 1 ? " is visible, number 0" : " are visible, numbered from 0"));
  }
  GPU_CHECK(cudaSetDevice(device));
  const Stream stream;
  const DeviceBuffer buffer(1024);
  buffer.fill(Format::int8, stream.get());
  stream.synchronize();
}

}  // namespace foretrain::gpu
