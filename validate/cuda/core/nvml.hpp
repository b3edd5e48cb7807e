// The driver's report of a GPU at work: clocks, energy, throttle reasons. libnvidia-ml.so.1 is
// loaded at run time, so that the program starts, and says what is missing, where there is no driver.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "validate/measure/record.hpp"

namespace foretrain::gpu {

/// Constant properties of a GPU by NVML; unknown ones stay empty.
struct NvmlDescription {
  std::string driver;
  std::optional<double> power_limit_w, default_power_limit_w;
  std::optional<double> max_sm_hz, max_memory_hz;
  std::optional<double> board_memory_bytes;           ///< of the whole board, of which an instance (MIG) has a part
  std::optional<double> pcie_generation, pcie_width;  ///< the most that card and slot agree on
  std::optional<bool> ecc, mig, persistence;
  unsigned long long uncorrected_ecc_errors = 0;  ///< since the driver was loaded
  std::vector<std::string> nvlink_peers;          ///< the other end of each link that is up, "00000000:c1:00.0"
  std::vector<unsigned> other_processes;          ///< of other users of this GPU, now
};

class Nvml {
 public:
  /// Never throws: without NVML every question is answered by nothing.
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  /// By PCI bus id ("0000:17:00.0"), since CUDA numbers GPUs as CUDA_VISIBLE_DEVICES says and NVML does not.
  [[nodiscard]] std::optional<DeviceState> state(const std::string& bus_id) const;
  /// Joules since the driver was loaded, by the device's own counter; nothing where it has none.
  [[nodiscard]] std::optional<double> energy(const std::string& bus_id) const;
  [[nodiscard]] NvmlDescription describe(const std::string& bus_id) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace foretrain::gpu
