// Drawings of machines as wholes: several sockets and NVSwitches, rings, and what has no room.
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/figure/plot_topology.hpp"
#include "reports/print/wiring_text.hpp"
#include "tests/catch.hpp"
#include "tests/hardware/nodes.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {
namespace {

using namespace test_nodes;

std::string drawn(const Node& node, int width) { return "\n" + panel_words(node_panel(node, node.network, width)); }
std::string told(const Node& node) { return "\n" + wiring_text(node, node.network, 0); }

/// Sockets with a switch each, on which GPUs hang.
Node sockets_with_switches(int sockets, int gpus_each) {
  Node node = bare_node("sockets", sockets * gpus_each, sockets);
  node.link_types = {link_type("pcie4", LinkKind::pcie, 25.0_GBps, 1.0_us),
                     link_type("nvlink", LinkKind::nvlink, 25.0_GBps, 1.0_us),
                     link_type("upi", LinkKind::socket, 20.0_GBps, 1.0_us)};
  const int gpus = sockets * gpus_each;
  for (int socket = 0; socket < sockets; ++socket) {
    const int plx = add_vertex(node, "plx" + std::to_string(socket), VertexKind::pcie_switch);
    node.links.push_back({plx, gpus + socket, 0, 1});
    for (int i = 0; i < gpus_each; ++i) node.links.push_back({socket * gpus_each + i, plx, 0, 1});
  }
  return node;
}

Node catalogue_node(const char* name) {
  const YamlNode written = yaml_scalar(name, {"", 0, 0});
  return read_node(Field(written, ""));
}

}  // namespace

TEST_CASE("A machine with two NVSwitches has a bar for each below its GPUs", "[golden]") {
  Node node = sockets_with_switches(2, 2);
  for (int number = 0; number < 2; ++number) {
    const int nvswitch = add_vertex(node, "nvswitch" + std::to_string(number), VertexKind::nvswitch);
    for (int gpu = 0; gpu < (number == 0 ? 4 : 2); ++gpu) node.links.push_back({gpu, nvswitch, 1, number + 1});
  }
  node.links.push_back({4, 5, 2, 2});
  check_whole("machine-two-nvswitches-bar-each.txt", drawn(node, 300));
  check_whole("machine-two-nvswitches-bar-each-2.txt", told(node));
}

TEST_CASE("GPUs in a ring are joined by arcs, the longer the higher", "[golden]") {
  Node node = sockets_with_switches(1, 4);
  for (int gpu = 0; gpu < 4; ++gpu) node.links.push_back({gpu, (gpu + 1) % 4, 1, 1});
  check_whole("gpus-ring-joined-arcs-longer.txt", drawn(node, 300));
  CHECK(told(node) == R"(
cpu0
└─ plx0            pcie4, 25.0 GB/s
   └─ gpu0 … gpu3  pcie4, 25.0 GB/s
gpu0 – gpu1, gpu3  nvlink, 25.0 GB/s
gpu1 – gpu2        nvlink, 25.0 GB/s
gpu2 – gpu3        nvlink, 25.0 GB/s
)");
}

TEST_CASE("Sockets and GPUs that have no room are an ellipsis between the first and the last", "[golden]") {
  Node node = sockets_with_switches(6, 4);
  for (int socket = 0; socket < 5; ++socket) node.links.push_back({24 + socket, 25 + socket, 2, 1});
  check_whole("sockets-gpus-have-no-room.txt", drawn(node, 200));
  check_whole("sockets-gpus-have-no-room-2.txt", told(node));
  check_whole("sockets-gpus-have-no-room-3.txt", drawn(catalogue_node("gb200-nvl72"), 346));
}

TEST_CASE("A machine of the catalogue is drawn with its cards and switches", "[golden]") {
  check_whole("machine-catalogue-drawn-cards-switches.txt", drawn(catalogue_node("dgx-a100-80gb"), 346));
  check_whole("machine-catalogue-drawn-cards-switches-2.txt", told(catalogue_node("dgx-a100-80gb")));
}

TEST_CASE("Pods and their cores are told with what goes up from each") {
  const auto fabric = [](const std::string& shape, int nodes) {
    const YamlNode document = parse_yaml(
        "cluster: { node: dgx-a100-80gb, nodes: " + std::to_string(nodes) + ", network: { fabric: { kind: fat_tree, " +
            shape + " } } }\nworkload: { collective: { operation: all_reduce, size: 1 MB } }\n",
        "test.yaml");
    return "\n" + fabric_text(read_scenario(document, "test").cluster);
  };
  CHECK(fabric("nodes_per_leaf: 4, nodes_per_pod: 16, pod_oversubscription: 3", 64) == R"(
  32 core switches; spine to core: 8533 Gbit/s from a pod
  128 spines, 32 in each pod of 16 machines; leaf to spines: 32 x 200 Gbit/s
  16 leaves, 4 machines on each; card to leaf: 200 Gbit/s
  64 x dgx-a100-80gb, 8 cards of 200 Gbit/s each
)");
  CHECK(fabric("nodes_per_leaf: 4, nodes_per_pod: 8, rails: true, pod_oversubscription: 100", 32) == R"(
  4 core switches; spine to core: 128 Gbit/s from a pod
  16 spines, 4 in each pod of 8 machines; leaf to spines: 4 x 200 Gbit/s
  64 leaves, one a rail, 4 machines on each; card to leaf: 200 Gbit/s
  32 x dgx-a100-80gb, 8 cards of 200 Gbit/s each
)");
}

}  // namespace foretrain::test
