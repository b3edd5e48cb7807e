#include "reports/figure/plot.hpp"

#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/print/wiring_text.hpp"
#include "tests/catch.hpp"
#include "tests/hardware/nodes.hpp"
#include "tests/reports/figure_words.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {

namespace {

using namespace test_nodes;

Node node_of(const std::string& name) { return read_node(Field(yaml_scalar(name, {"", 0, 0}), "")); }

std::string reported(const Node& node) { return "\n" + wiring_text(node, node.network, 0); }

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

/// No label lies over another or outside of the panel.
void check_labels(const Panel& panel) {
  constexpr double line = 12.0;
  for (std::size_t i = 0; i < panel.labels.size(); ++i) {
    const Label& a = panel.labels[i];
    const double half = text_width(a.text, a.font) / 2.0;
    INFO(a.text << " at " << a.x);
    if (a.pin == Pin::middle) {
      CHECK(a.x - half >= -1.0);
      CHECK(a.x + half <= panel.width + 1.0);
    }
    for (std::size_t j = 0; j < i; ++j) {
      const Label& b = panel.labels[j];
      if (a.pin != Pin::middle || b.pin != Pin::middle || std::abs(a.y - b.y) >= line) continue;
      INFO("beside " << b.text);
      CHECK(std::abs(a.x - b.x) >= half + text_width(b.text, b.font) / 2.0);
    }
  }
}

/// No box lies over another.
void check_boxes(const Panel& panel) {
  std::vector<Box> all;
  for (const Series& series : panel.series) all.insert(all.end(), series.boxes.begin(), series.boxes.end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Box &a = all[i], &b = all[j];
      CHECK((a.right <= b.left || b.right <= a.left || a.high <= b.low || b.high <= a.low));
    }
  }
}

Cluster fat_tree(const std::string& shape, int nodes) {
  return load_scenario_text("cluster: { node: dgx-a100-80gb, nodes: " + std::to_string(nodes) +
                                ", network: { fabric: { kind: fat_tree, " + shape +
                                " } } }\nworkload: { collective: { operation: all_reduce, size: 1 MB } }\n",
                            "test.yaml")
      .cluster;
}

constexpr int column = 346, page = 760;  // pixels: a column of 8.5 cm without its margins, and a screen's

}  // namespace

TEST_CASE("Machines of the catalogue are drawn without labels that collide, in a column and across a page") {
  for (const std::string& name : catalogue_names(list_hardware(), "node")) {
    INFO(name);
    const Node node = node_of(name);
    for (const int width : {column, page}) {
      INFO(width);
      const Panel panel = node_panel(node, node.network, width);
      CHECK(panel.width == width);
      check_labels(panel);
      check_boxes(panel);
    }
  }
}

TEST_CASE("Wires between all pairs are reported in a line, others as they are") {
  Node mesh = bare_node("mesh", 4, 1);
  mesh.link_types = {link_type("nvlink4", LinkKind::nvlink, 25.0_GBps, 1.0_us)};
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) mesh.links.push_back({a, b, 0, 6});
  }
  CHECK_THAT(wiring_text(mesh, mesh.network, 0), Catch::Contains("each pair of gpu0 … gpu3"));
  mesh.links.pop_back();
  CHECK_THAT(wiring_text(mesh, mesh.network, 0), !Catch::Contains("each pair"));
}

TEST_CASE("A small machine is drawn as a whole: its parts, the wires between them, and where both stand", "[golden]") {
  Node node = bare_node("small", 2, 2);
  node.link_types = {link_type("pcie4", LinkKind::pcie, 25.0_GBps, 1.0_us),
                     link_type("nvlink", LinkKind::nvlink, 25.0_GBps, 1.0_us),
                     link_type("upi", LinkKind::pcie, 20.0_GBps, 1.0_us)};
  node.links = {{0, 2, 0, 1}, {1, 3, 0, 1}, {0, 1, 1, 2}, {2, 3, 2, 1}};
  check_whole("small-machine-drawn-whole-parts.txt", panel_words(node_panel(node, node.network, 200)));
  CHECK(wiring_text(node, node.network, 1) == R"( cpu0
 └─ gpu0      pcie4, 25.0 GB/s
 cpu1
 └─ gpu1      pcie4, 25.0 GB/s
 gpu0 – gpu1  2 x nvlink, 50.0 GB/s
 cpu0 – cpu1  upi, 20.0 GB/s
)");
}

TEST_CASE("Wires between GPUs in a ring are reported from each to its neighbours") {
  Node node = sockets_with_switches(1, 4);
  for (int gpu = 0; gpu < 4; ++gpu) node.links.push_back({gpu, (gpu + 1) % 4, 1, 1});
  CHECK(reported(node) == R"(
cpu0
└─ plx0            pcie4, 25.0 GB/s
   └─ gpu0 … gpu3  pcie4, 25.0 GB/s
gpu0 – gpu1, gpu3  nvlink, 25.0 GB/s
gpu1 – gpu2        nvlink, 25.0 GB/s
gpu2 – gpu3        nvlink, 25.0 GB/s
)");
}

TEST_CASE("Parts that have no room are an ellipsis between the first and the last") {
  // 24 GPUs and no more than 200 / 17 = 11 boxes in a row.
  const Node node = sockets_with_switches(6, 4);
  const Panel panel = node_panel(node, node.network, 200);
  CHECK(std::ranges::count(panel.labels, std::string("…"), &Label::text) == 1);
  const auto gpus = std::ranges::find(panel.series, std::string("GPU"), &Series::name);
  REQUIRE(gpus != panel.series.end());  // named in the legend, as their boxes have room for numbers alone
  CHECK(gpus->boxes.size() == 10);
  check_labels(panel);
}

TEST_CASE("A machine of the catalogue is reported with its cards and switches", "[golden]") {
  check_whole("machine-catalogue-drawn-cards-switches-2.txt", reported(node_of("dgx-a100-80gb")));
}

TEST_CASE("Levels of a fabric are reported in words, with counts") {
  const auto reported = [](const std::string& shape, int nodes) { return "\n" + fabric_text(fat_tree(shape, nodes)); };
  CHECK(reported("nodes_per_leaf: 2, nodes_per_pod: 4, oversubscription: 2, pod_oversubscription: 2", 8) == R"(
  8 core switches; spine to core: 1600 Gbit/s from a pod
  16 spines, 8 in each pod of 4 machines; leaf to spines: 8 x 200 Gbit/s
  4 leaves, 2 machines on each; NIC to leaf: 200 Gbit/s
  8 x dgx-a100-80gb, 8 cards of 200 Gbit/s each
)");
  CHECK(reported("nodes_per_leaf: 1, rails: true", 2) == R"(
  1 spine; leaf to spines: 1 x 200 Gbit/s
  16 leaves, one a rail, 1 machine on each; NIC to leaf: 200 Gbit/s
  2 x dgx-a100-80gb, 8 cards of 200 Gbit/s each
)");
  CHECK(reported("nodes_per_leaf: 4, nodes_per_pod: 16, pod_oversubscription: 3", 64) == R"(
  32 core switches; spine to core: 8533 Gbit/s from a pod
  128 spines, 32 in each pod of 16 machines; leaf to spines: 32 x 200 Gbit/s
  16 leaves, 4 machines on each; NIC to leaf: 200 Gbit/s
  64 x dgx-a100-80gb, 8 cards of 200 Gbit/s each
)");
  CHECK(reported("nodes_per_leaf: 4, nodes_per_pod: 8, rails: true, pod_oversubscription: 100", 32) == R"(
  4 core switches; spine to core: 128 Gbit/s from a pod
  16 spines, 4 in each pod of 8 machines; leaf to spines: 4 x 200 Gbit/s
  64 leaves, one a rail, 4 machines on each; NIC to leaf: 200 Gbit/s
  32 x dgx-a100-80gb, 8 cards of 200 Gbit/s each
)");
}

}  // namespace foretrain::test
