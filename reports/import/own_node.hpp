// A machine of one's own as a node file: as one of the catalogue, or put together of few choices. All other figures are
// those of a machine with such GPUs, or of a plain server, and stand under `assumed`.
#pragma once

#include <string>
#include <string_view>

namespace foretrain {

enum class GpuLinks { as_like, nvswitch, nvlink_mesh, nvlink_bridge, pcie };
inline constexpr std::string_view gpu_link_words[] = {"as-like", "nvswitch", "nvlink-mesh", "nvlink-bridge", "pcie"};

/// What is asked for. Empty texts and -1: as the machine that it is like; without one, no network.
struct OwnNode {
  std::string name = {}, like = {}, gpu = {}, nic_bandwidth = {};
  int gpus = -1, sockets = -1, switches = -1, nics = -1;
  GpuLinks links = GpuLinks::as_like;
};

/// The file. Throws UsageError for what cannot be wired so, and ScenarioError for what cannot be built.
std::string own_node(const OwnNode& asked);

}  // namespace foretrain
