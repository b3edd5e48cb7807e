// check_node finds each fault, and only that.
#include "model/hardware/check.hpp"

#include "tests/catch.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;
using namespace foretrain::test_nodes;

namespace {

/// A DGX-1 with every figure that the check asks for.
Node complete_node() {
  Node node = dgx1_node();
  node.gpu.memory = 16.0_GiB;
  node.gpu.memory_bandwidth = 900.0_GBps;
  node.gpu.vector_rate[static_cast<std::size_t>(Precision::fp32)] = 15.7_TFLOPps;
  node.gpu.sms = 80;
  node.cpu.memory = 512.0_GiB;
  node.cpu.fp32_rate = 2.8_TFLOPps;
  return node;
}

/// The keys and texts of the problems, each as "key: text".
std::vector<std::string> problems(const Node& node) {
  std::vector<std::string> texts;
  for (const HardwareProblem& problem : check_node(node)) texts.push_back(problem.key + ": " + problem.text);
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("A sound node has no problems") { CHECK(problems(complete_node()).empty()); }

TEST_CASE("Faults of the wiring are named by their parts") {
  Node node = complete_node();
  SECTION("a link without type") {
    node.links[0].type = 7;
    CHECK(problems(node) == Texts{"wiring: the link between gpu0 and gpu3 has no type"});
  }
  SECTION("a link to nowhere") {
    node.links[0].b = 99;
    CHECK(problems(node) == Texts{"wiring: a link joins vertices 0 and 99, but there are 14"});
  }
  SECTION("a link to itself") {
    node.links[0].b = 0;
    CHECK(problems(node) == Texts{"wiring: gpu0 is linked to itself"});
  }
  SECTION("a part without link") {
    add_vertex(node, "plx9", VertexKind::pcie_switch);
    CHECK(problems(node) == Texts{"wiring: no link leads from gpu0 to plx9"});
  }
  SECTION("NVLinks alone leave GPUs apart, for GPUs carry nothing for others") {
    std::erase_if(node.links, [](const NodeLink& link) { return link.type != 0; });
    // GPU 0 has NVLinks to 1, 2, 3 and 4; all else was reached over PCIe.
    CHECK(problems(node) ==
          Texts{"wiring: no link leads from gpu0 to gpu5, gpu6, gpu7, cpu0, cpu1, plx0, plx1, plx2, plx3"});
  }
  SECTION("fewer CPUs than sockets") {
    node.cpu.sockets = 4;
    CHECK(problems(node) == Texts{"cpu.sockets: 4 sockets, but 2 CPUs are wired"});
  }
  SECTION("a card on a GPU") {
    node.nic_attachment = {3};
    CHECK(problems(node) == Texts{"nics.attached_to: a card hangs on gpu3, which carries nothing for others"});
  }
}

TEST_CASE("Figures that are zero or impossible are named by their key") {
  Node node = complete_node();
  node.link_types[1].bandwidth = BytesPerSecond(0);
  node.gpu.memory = Bytes(0);
  node.network.efficiency = 1.5;
  node.network.oversubscription = 0.5;
  CHECK(problems(node) == Texts{"link_types.pcie3-x16.bandwidth: link type pcie3-x16 carries 0 B/s",
                                "gpu.memory: 0 is not a positive number",
                                "network.efficiency: 1.5 is no share between 0 and 1",
                                "network.oversubscription: 0.5 is below 1"});
}

TEST_CASE("A node without GPU or CPU is named as such") {
  Node node;
  const std::vector<HardwareProblem> found = check_node(node);
  REQUIRE(found.size() >= 2);
  CHECK(found[0].key == "gpus");
  CHECK(found[1].text == "a node needs at least one CPU");
}
