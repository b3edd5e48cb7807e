// A machine of one's own as a node file: as one of the catalogue, or put together of few choices, all other figures
// those of the catalogue's machine that is most like it.
#pragma once

#include <string>
#include <string_view>

namespace foretrain {

enum class GpuLinks { as_like, nvswitch, nvlink_mesh, pcie };
inline constexpr std::string_view gpu_link_words[] = {"as-like", "nvswitch", "nvlink-mesh", "pcie"};

/// What is asked for. Empty texts and -1: as the machine that it is like.
struct OwnNode {
  std::string name = {}, like = {}, gpu = {}, nic_bandwidth = {};
  int gpus = -1, sockets = -1, switches = -1, nics = -1;
  GpuLinks links = GpuLinks::as_like;
};

/// The file. Throws UsageError for what cannot be wired so, and ScenarioError for what cannot be built.
std::string own_node(const OwnNode& asked);

}  // namespace foretrain
