#include "validate/cuda/probe.hpp"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#ifdef FORETRAIN_HAS_CUDNN
#include <cudnn.h>
#endif
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "validate/cuda/child_process.hpp"
#include "validate/cuda/collective/nccl.hpp"
#include "validate/cuda/collective/network_cards.hpp"
#include "validate/cuda/commands.hpp"
#include "validate/cuda/core/nvml.hpp"
#include "validate/cuda/math/format.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/json_object.hpp"

namespace foretrain::gpu {

namespace {

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

/// As JSON; "" for what was not built in.
std::string library_versions() {
  int runtime = 0;
  GPU_CHECK(cudaRuntimeGetVersion(&runtime));
  const std::size_t cublas = cublasLtGetVersion();  // 120304 is 12.3.4, 130001 is 13.0.1
  std::string cudnn;
#ifdef FORETRAIN_HAS_CUDNN
  const std::size_t version = cudnnGetVersion();  // 90100 is 9.1.0
  cudnn = dotted(version / 10000, version / 100 % 100, version % 100);
#endif
  JsonObject out;
  out.text("cuda_runtime", version_text(runtime)).text("cuda_driver", version_text(driver_version()));
  out.text("cublaslt", dotted(cublas / 10000, cublas / 100 % 100, cublas % 100));
  return out.text("cudnn", cudnn).text("nccl", nccl_version()).str();
}

struct Gpu {
  Gpu(int device, const Nvml& of) : index(device), bus_id(bus_id_of(device)), nvml(of.describe(bus_id)) {
    GPU_CHECK(cudaGetDeviceProperties(&properties, device));
  }
  int index;
  std::string bus_id;
  NvmlDescription nvml;
  cudaDeviceProp properties = {};
};

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

std::string json_of(const Gpu& gpu) {
  const int d = gpu.index;
  const NvmlDescription& nvml = gpu.nvml;
  JsonObject out;
  out.number("index", d).text("name", gpu.properties.name).text("bus_id", gpu.bus_id);
  out.text("compute_capability", std::to_string(device_attribute(cudaDevAttrComputeCapabilityMajor, d)) + "." +
                                     std::to_string(device_attribute(cudaDevAttrComputeCapabilityMinor, d)));
  out.number("sms", device_attribute(cudaDevAttrMultiProcessorCount, d));
  out.number("sm_clock_hz", device_attribute(cudaDevAttrClockRate, d) * 1e3);
  out.number("memory_clock_hz", device_attribute(cudaDevAttrMemoryClockRate, d) * 1e3);
  out.number("max_sm_clock_hz", nvml.max_sm_hz).number("max_memory_clock_hz", nvml.max_memory_hz);
  out.number("memory_bytes", static_cast<double>(gpu.properties.totalGlobalMem));
  out.number("memory_bus_bits", device_attribute(cudaDevAttrGlobalMemoryBusWidth, d));
  out.number("l2_bytes", device_attribute(cudaDevAttrL2CacheSize, d));
  out.number("shared_memory_per_sm_bytes", device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, d));
  out.number("copy_engines", device_attribute(cudaDevAttrAsyncEngineCount, d));
  out.flag("ecc", nvml.ecc).flag("mig", nvml.mig).number("board_memory_bytes", nvml.board_memory_bytes);
  out.number("power_limit_w", nvml.power_limit_w).number("default_power_limit_w", nvml.default_power_limit_w);
  out.number("pcie_generation", nvml.pcie_generation).number("pcie_width", nvml.pcie_width);
  return out.number("nvlinks", static_cast<double>(nvml.nvlink_peers.size())).str();
}

/// NVLinks that lead straight to the other GPU; where all lead to switches, those that both ends can use.
std::size_t links_between(const Gpu& from, const Gpu& to, const std::vector<Gpu>& gpus) {
  const std::vector<std::string>& peers = from.nvml.nvlink_peers;
  const auto leads_to = [](const Gpu& gpu) {
    return [&gpu](const std::string& peer) { return peer.ends_with(gpu.bus_id); };
  };
  if (std::ranges::any_of(gpus, [&](const Gpu& gpu) { return std::ranges::any_of(peers, leads_to(gpu)); })) {
    return static_cast<std::size_t>(std::ranges::count_if(peers, leads_to(to)));
  }
  return std::min(peers.size(), to.nvml.nvlink_peers.size());
}

std::string json_of_link(const Gpu& from, const Gpu& to, const std::vector<Gpu>& gpus) {
  int access = 0;
  GPU_CHECK(cudaDeviceCanAccessPeer(&access, from.index, to.index));
  JsonObject out;
  out.number("from", from.index).number("to", to.index);
  out.number("nvlinks", static_cast<double>(links_between(from, to, gpus)));
  return out.flag("peer_access", access != 0).str();
}

std::vector<std::string> warnings_of(const Gpu& gpu) {
  std::vector<std::string> out;
  const std::string who = "GPU " + std::to_string(gpu.index) + " (" + std::string(gpu.properties.name) + ")";
  if (!gpu.nvml.other_processes.empty()) {
    std::string list;
    for (const unsigned process : gpu.nvml.other_processes)
      list += (list.empty() ? "" : ", ") + std::to_string(process);
    out.push_back(who + " is in use by " + (gpu.nvml.other_processes.size() > 1 ? "processes " : "process ") + list +
                  ": what is measured beside them is too slow");
  }
  if (gpu.nvml.uncorrected_ecc_errors > 0) {
    out.push_back(who + " has counted " + std::to_string(gpu.nvml.uncorrected_ecc_errors) +
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

/// Makes a context on the first GPU and runs a kernel there. Throws GpuError: in use by someone else, no code for it,
/// ….
void try_gpu() {
  const Stream stream;
  const DeviceBuffer buffer(1024);
  buffer.fill(Format::int8, stream.get());
  stream.synchronize();
}

/// Description of this machine, as JSON; warnings go to standard error.
std::string probed(const Nvml& nvml) {
  const int count = device_count();
  std::vector<Gpu> gpus;
  for (int device = 0; device < count; ++device) gpus.emplace_back(device, nvml);
  std::string identity;
  std::vector<std::string> descriptions, links, cards, warnings;
  for (const Gpu& gpu : gpus) {
    descriptions.push_back(json_of(gpu));
    identity += std::string(gpu.properties.name) + ", ";
    for (const std::string& warning : warnings_of(gpu)) warnings.push_back(warning);
    for (const Gpu& other : gpus) {
      if (other.index != gpu.index) links.push_back(json_of_link(gpu, other, gpus));
    }
  }
  for (const std::string& warning : warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  for (const NetworkCard& card : network_cards()) {
    cards.push_back(JsonObject().text("name", card.name).number("bits_per_second", card.bits_per_second).str());
  }
  const std::string driver = gpus.front().nvml.driver, versions = library_versions();
  identity += "driver " + driver + ", CUDA " + json_text_field(versions, "cuda_runtime");
  utsname system{};
  uname(&system);
  JsonObject out;
  out.text("date", utc_date("%Y-%m-%dT%H:%M:%SZ"))
      .text("identity", identity)
      .text("kernel", system.release)
      .text("processor", processor_name());
  out.text("driver", driver).raw("versions", versions).number("gpu_count", count);
  out.raw("gpus", json_list(descriptions)).raw("links", json_list(links));
  const std::string json = out.raw("network_cards", json_list(cards)).texts("warnings", warnings).str();
  try_gpu();
  return json;
}

}  // namespace

Machine probe_in_child() {
  constexpr double limit_s = 180.0;  // a driver that is not persistent takes many seconds for eight GPUs
  struct Shared {
    int gpus, capability;
    std::array<char, 1 << 20> json;
  };
  const SharedMemory memory(sizeof(Shared));
  Shared& shared = memory.as<Shared>(1).front();
  const auto probe = [&shared] {
    probed(Nvml()).copy(shared.json.data(), shared.json.size() - 1);
    shared.gpus = visible_devices();
    shared.capability = compute_capability();
    return exit_status::done;
  };
  const ChildEnd end = run_in_child(probe, limit_s);
  if (end.status == exit_status::done) return {shared.json.data(), shared.gpus, shared.capability};
  throw GpuError(Fault::unavailable, end.status ? "no usable GPU (see above): nothing was measured"
                                                : "the driver does not answer (" + end.why +
                                                      "): see dmesg for Xid errors; a reboot may be needed");
}

int probe_command(const std::vector<std::string>& words) {
  read_options(words, {}, false);
  std::puts(probed(Nvml()).c_str());
  return exit_status::done;
}

}  // namespace foretrain::gpu
