// A machine as a hardware file, from what its driver tells and what was measured: no GPU needs to be known beforehand.
#pragma once

#include <optional>
#include <string>

#include "model/base/quantity.hpp"
#include "model/hardware/gpu.hpp"
#include "model/scenario/yaml_document.hpp"
#include "validate/fit/machine.hpp"

namespace foretrain {

/// Measured values that no driver reports. Empty ones are assumed, and the description says so.
struct MeasuredFigures {
  std::optional<Seconds> memory_latency;            ///< pointer chase over a working set far beyond the L2
  std::optional<BytesPerSecond> l2_bandwidth;       ///< reads of data that stay in the L2
  std::optional<BytesPerSecond> host_bandwidth;     ///< large pinned copies, the slower direction
  std::optional<Seconds> host_latency;              ///< smallest copy
  std::optional<BytesPerSecond> peer_bandwidth;     ///< large copies between GPUs, one direction
  std::optional<Seconds> peer_latency;              ///< smallest of these
  std::optional<BytesPerSecond> ring_bandwidth;     ///< bus bandwidth of large rings over all GPUs of a machine
  std::optional<BytesPerSecond> network_bandwidth;  ///< the same over several machines
};

/// The catalogue's name of a GPU with this compute capability, these multiprocessors, memory within 3 % and a boost
/// clock within 12 %; of several the one whose name shares most words with the driver's, then the nearest clock.
std::optional<std::string> known_gpu(const MeasuredGpu& gpu);

/// "nvidia-geforce-rtx-5090": the driver's name as a catalogue name.
std::string gpu_name(const MeasuredGpu& gpu);

/// The GPU as `kind: gpu` in JSON, which is YAML: peak rates from operations per clock
/// (scenarios/hardware/architectures.yaml), peak bandwidth from clock and bus, the rest from the driver or measured.
/// Each figure states its source.
std::string gpu_document(const MeasuredGpu& gpu, const MeasuredFigures& figures);

/// The whole machine as `kind: node`, the same, GPUs inline, or by name where the catalogue knows them. `cpu` is the
/// `cpu:` of a detected hardware file; without, a plain server is assumed, and said so.
std::string node_document(const Machine& machine, const MeasuredFigures& figures, const YamlNode* cpu = nullptr);

}  // namespace foretrain
