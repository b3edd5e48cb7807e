// The machine that was measured, as machine.json describes it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/quantity.hpp"

namespace foretrain {

/// One GPU as the driver describes it. What no driver tells stays empty.
struct MeasuredGpu {
  int index = 0;
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  double compute_capability = 0.0;
  int sms = 0;
  Hertz clock;  ///< boost clock of the multiprocessors
  std::optional<Hertz> memory_clock;
  std::optional<int> bus_bits;
  Bytes memory, l2_cache;
  std::optional<Bytes> shared_memory_per_sm;
  std::optional<double> power_limit_watts;
  std::optional<int> copy_engines;
  std::optional<int> pcie_generation, pcie_width;
  int nvlinks = 0;            ///< that are up
  double memory_share = 1.0;  ///< of the board's memory that it has, and so of its bandwidth: less of a MIG instance

  /// Two transfers per clock and line of the bus, its share of them. Empty where the driver reports no memory clock or
  /// bus width.
  [[nodiscard]] std::optional<BytesPerSecond> peak_bandwidth() const;
};

struct MeasuredLink {
  int from = 0, to = 0;
  int nvlinks = 0;  ///< straight, or those that both ends have where all lead to switches
  bool peer_access = false;
};

struct Machine {
  std::string date, kernel, driver, processor;
  std::map<std::string, std::string> versions;  ///< "cuda_runtime": "12.8", …
  std::vector<MeasuredGpu> gpus;                ///< at least one
  std::vector<MeasuredLink> links;
  int network_cards = 0;     ///< that are up, of the fastest kind
  BytesPerSecond card_rate;  ///< of one of them

  /// Whether NVLinks lead to switches: more than two GPUs, every two of which reach each other over all of their links.
  [[nodiscard]] bool has_nvswitch() const;
};

/// Reads machine.json. Keys that it does not need are left alone: the file tells people more than the model wants.
/// Throws ScenarioError.
Machine read_machine(const std::filesystem::path& file);
Machine read_machine_text(std::string_view text, const std::string& file);

}  // namespace foretrain
