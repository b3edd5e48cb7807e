// A machine of one's own as a commented node file to go on with: one of the catalogue, or put together of few choices.
// All other figures are then those of a machine with such GPUs, or of a plain server, and stand under `assumed`.
#pragma once

#include <string>
#include <string_view>

namespace foretrain {

enum class GpuLinks { unsaid, nvswitch, nvlink_mesh, nvlink_bridge, pcie };
inline constexpr std::string_view gpu_link_words[] = {"unsaid", "nvswitch", "nvlink-mesh", "nvlink-bridge", "pcie"};

/// Requested node: of `like` no more than a name. Empty texts and -1: not said; no cards are no network.
struct OwnNode {
  std::string name = {}, like = {}, gpu = {}, nic_bandwidth = {};
  int gpus = -1, sockets = -1, switches = -1, nics = -1;
  GpuLinks links = GpuLinks::unsaid;
  bool operator==(const OwnNode&) const = default;
};

/// The file. Throws UsageError for what cannot be wired so, and ScenarioError for what cannot be built.
std::string own_node(const OwnNode& asked);

}  // namespace foretrain
