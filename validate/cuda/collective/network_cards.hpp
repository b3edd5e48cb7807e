// The NICs of a machine, as Linux reports them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace foretrain::gpu {

struct NetworkCard {
  std::string name;  ///< "mlx5_0", "eth0"
  double bits_per_second = 0.0;
};

/// Ports that are up: of InfiniBand and RoCE, or where there are none, of Ethernet; of these the ones of the highest
/// rate, by which collectives go. `root` holds `infiniband` and `net` as /sys/class does.
std::vector<NetworkCard> network_cards(const std::filesystem::path& root = "/sys/class");

}  // namespace foretrain::gpu
