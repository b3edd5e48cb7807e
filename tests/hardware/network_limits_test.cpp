// Limits that keep NICs from their line rate.
#include "model/hardware/check.hpp"

#include "tests/catch.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

std::vector<std::string> limits_of(const Cluster& cluster) { return network_limits(cluster, Topology(cluster)); }

}  // namespace

TEST_CASE("Slots narrower than their card, idle cards and slow connections are said") {
  // Cards of 25 GB/s behind PCIe of 25 GB/s: nothing is lost.
  Cluster cluster = cluster_of(nvswitch_node(), 2);
  CHECK(limits_of(cluster).empty());
  // Cards of 100 GB/s on the same slots give no more than 200 Gbit/s.
  cluster.network.nic_bandwidth = 800.0_Gbitps;
  REQUIRE(limits_of(cluster).size() == 1);
  CHECK(limits_of(cluster).front().find("limits a NIC of 800 Gbit/s to 200 Gbit/s") != std::string::npos);
  // One node has no network to speak of.
  cluster.nodes = 1;
  CHECK(limits_of(cluster).empty());

  // Two of eight GPUs are in use: they sit at two of the eight cards.
  Cluster few = cluster_of(nvswitch_node(), 2);
  few.gpus_per_node = 2;
  REQUIRE(limits_of(few).size() == 1);
  CHECK(limits_of(few).front().find("6 of its 8 NICs") != std::string::npos);

  // A window of 64 KiB over 1 ms there and back is 0.5 Gbit/s of a card of 200.
  Cluster far = cluster_of(nvswitch_node(), 2);
  far.network.latency = 500.0_us;
  far.network.transport = Transport{.protocol = Protocol::tcp, .mtu = Bytes(9000.0), .window = Bytes(65536.0)};
  REQUIRE(limits_of(far).size() == 1);
  CHECK(limits_of(far).front().find("window") != std::string::npos);

  // Three nodes over RoCE and no word of the fabric; a measured share for their number says it.
  Cluster fabric = cluster_of(nvswitch_node(), 3);
  fabric.network.transport = Transport{.protocol = Protocol::roce, .mtu = Bytes(4096.0)};
  REQUIRE(limits_of(fabric).size() == 1);
  CHECK(limits_of(fabric).front().find("network.scaling") != std::string::npos);
  fabric.network.scaling = {{3, 0.7}};
  CHECK(limits_of(fabric).empty());
  fabric.network.scaling.clear();
  fabric.nodes = 2;
  CHECK(limits_of(fabric).empty());
}
