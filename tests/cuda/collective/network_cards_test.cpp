#include "validate/cuda/collective/network_cards.hpp"

#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"

using namespace foretrain;
using gpu::network_cards;
using gpu::NetworkCard;

TEST_CASE("Of a machine's cards those are identified by which collectives go", "[gpu]") {
  const TemporaryFolder folder;
  CHECK(network_cards(folder.path()).empty());
  // Ethernet alone: what is up, and no bridge.
  folder.write("net/eth0/device/vendor", "0x15b3\n");
  folder.write("net/eth0/operstate", "up\n");
  folder.write("net/eth0/speed", "25000\n");
  folder.write("net/docker0/operstate", "up\n");
  folder.write("net/docker0/speed", "10000\n");
  REQUIRE(network_cards(folder.path()).size() == 1);
  CHECK(network_cards(folder.path()).front().name == "eth0");
  CHECK(network_cards(folder.path()).front().bits_per_second == 25e9);
  // Eight of 400 Gbit/s for the GPUs, one of 100 for storage, one that is down.
  for (int i = 0; i < 8; ++i) {
    const std::string port = "infiniband/mlx5_" + std::to_string(i) + "/ports/1";
    folder.write(port + "/rate", "400 Gb/sec (4X NDR)\n");
    folder.write(port + "/state", "4: ACTIVE\n");
  }
  folder.write("infiniband/mlx5_8/ports/1/rate", "100 Gb/sec (2X HDR)\n");
  folder.write("infiniband/mlx5_8/ports/1/state", "4: ACTIVE\n");
  folder.write("infiniband/mlx5_9/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  folder.write("infiniband/mlx5_9/ports/1/state", "1: DOWN\n");
  const std::vector<NetworkCard> cards = network_cards(folder.path());
  REQUIRE(cards.size() == 8);
  CHECK(cards.back().name == "mlx5_7");
  CHECK(cards.back().bits_per_second == 400e9);
}
