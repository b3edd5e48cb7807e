#include "model/hardware/wiring_tree.hpp"

#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

Node node_of(const std::string& name) { return read_node(Field(yaml_scalar(name, {"", 0, 0}), "")); }

std::vector<std::string> names(const WiringTree& tree, const std::vector<int>& parts) {
  std::vector<std::string> all;
  for (const int part : parts) all.push_back(tree.parts[static_cast<std::size_t>(part)].name);
  return all;
}

}  // namespace

TEST_CASE("A machine's tree hangs switches on sockets, GPUs and cards on switches") {
  const Node node = node_of("dgx-a100-80gb");
  const WiringTree tree = wiring_tree(node, node.network);
  CHECK(names(tree, tree.roots) == std::vector<std::string>{"cpu0", "cpu1"});
  // Two switches on a socket, two GPUs and two cards on a switch, as the file says.
  CHECK(names(tree, tree.leaves(tree.roots[1])) ==
        std::vector<std::string>{"gpu4", "gpu5", "nic4", "nic5", "gpu6", "gpu7", "nic6", "nic7"});
  CHECK(tree.alike(tree.roots[0], tree.roots[1]));
  // Beside it: eight GPUs to the NVSwitch by twelve links of 23 GB/s, and one line between the sockets.
  REQUIRE(tree.others.size() == 9);
  CHECK(tree.others.front().wires.bandwidth().value() == Approx(12 * 23e9));
}

TEST_CASE("A switch on which nothing but sockets hangs stands beside the tree") {
  const Node node = node_of("gb200-nvl72");
  const WiringTree tree = wiring_tree(node, node.network);
  CHECK(tree.roots.size() == 36);
  CHECK(names(tree, tree.leaves(tree.roots[35])) == std::vector<std::string>{"gpu70", "gpu71", "nic70", "nic71"});
}

TEST_CASE("Each part of a machine of the catalogue stands in its tree once, or joins others") {
  for (const std::string& name : catalogue_names(list_hardware(), "node")) {
    INFO(name);
    const Node node = node_of(name);
    const WiringTree tree = wiring_tree(node, node.network);
    std::size_t reached = 0, links = 0;
    for (const WiringTree::Part& part : tree.parts) {
      reached += part.children.size();
      links += part.parent >= 0 && part.kind != VertexKind::nic ? 1 : 0;
      if (part.parent >= 0) CHECK(part.depth == tree.parts[static_cast<std::size_t>(part.parent)].depth + 1);
    }
    std::size_t free = 0;  // NVSwitches, and switches between sockets
    for (std::size_t i = 0; i < tree.parts.size(); ++i) {
      const bool root = std::ranges::find(tree.roots, static_cast<int>(i)) != tree.roots.end();
      if (tree.parts[i].parent < 0 && !root) ++free;
    }
    CHECK(reached + tree.roots.size() + free == tree.parts.size());
    CHECK(links + tree.others.size() == node.links.size());
  }
}

}  // namespace foretrain::test
