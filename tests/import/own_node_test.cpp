#include "reports/import/own_node.hpp"

#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

/// Without what says where figures come from, which names files.
Node as_built(Node node) {
  node.constants.clear();
  node.gpu.constants.clear();
  return node;
}

Node read_text(const std::string& text) { return as_built(read_node(Field(parse_yaml(text, "own.yaml"), ""))); }

Node of_catalogue(const std::string& name) { return as_built(read_node(Field(yaml_scalar(name, {"", 0, 0}), ""))); }

}  // namespace

TEST_CASE("Every machine of the catalogue comes back as a commented file that describes the same") {
  for (const std::string& name : catalogue_names(list_hardware(), "node")) {
    INFO(name);
    const std::string text = own_node({.like = name});
    // Two nodes that are equal in all but where their figures come from are predicted alike.
    CHECK(read_text(text) == of_catalogue(name));
    CHECK_THAT(text, Catch::Contains("# GPUs per node."));
    CHECK_THAT(text, Catch::Contains("#   cpu0"));
  }
}

TEST_CASE("A machine of a few choices is wired as they say, and loads at once") {
  const Node node = read_text(own_node({.name = "mine",
                                        .gpu = "h100-sxm-80gb",
                                        .nic_bandwidth = "200 Gbit/s",
                                        .gpus = 8,
                                        .switches = 2,
                                        .nics = 4,
                                        .links = GpuLinks::nvswitch}));
  CHECK(node.name == "mine");
  CHECK(node.network.nics_per_node == 4);
  CHECK(node.network.nic_bandwidth.value() == Approx(25e9));
  // Eight GPUs to the NVSwitch and to their switch, two switches to two sockets, these to each other.
  CHECK(node.links.size() == 8 + 8 + 2 + 1);
  CHECK(node.nic_attachment.size() == 2);
  // 18 links of an H100, as its machines in the catalogue have.
  CHECK(node.links.front().count == 18);
}

TEST_CASE("Without switches GPUs hang on processors, without cards there is no network") {
  const Node node = read_text(own_node({.gpu = "rtx-4090", .gpus = 6, .sockets = 2, .switches = 0, .nics = 0}));
  CHECK(node.gpus == 6);
  CHECK(node.network.nics_per_node == 0);
  CHECK(node.links.size() == 6 + 1);
  // The plain server has one processor of 32 cores: two of them have 64.
  CHECK(node.cpu.sockets == 2);
  CHECK(node.cpu.cores == 64);
}

TEST_CASE("GPUs that are joined each to each share their links evenly, or it is said why they cannot") {
  // Twelve links of an A100: to three others four each.
  const Node four = read_text(own_node({.gpu = "a100-sxm-80gb", .gpus = 4, .links = GpuLinks::nvlink_mesh}));
  CHECK(four.links.front().count == 4);
  CHECK_THROWS_WITH(own_node({.gpu = "a100-sxm-80gb", .gpus = 16, .links = GpuLinks::nvlink_mesh}),
                    Catch::Contains("12 links of a GPU do not reach 15 others; at most 13 GPUs, or nvswitch"));
  CHECK_THROWS_WITH(own_node({.gpu = "rtx-4090", .gpus = 2, .links = GpuLinks::nvswitch}),
                    Catch::Contains("rtx-4090 has no NVLink; write --links pcie"));
  CHECK_THROWS_WITH(own_node({.like = "dgx-h1000"}), Catch::Contains("dgx-h100"));
}

TEST_CASE("A machine of which the GPU alone is known is a plain server, and says so in every prediction") {
  CHECK_THROWS_WITH(own_node({.gpu = "rtx-3090"}), Catch::Contains("how many has the machine? --gpus N") &&
                                                       Catch::Contains("--sockets N") && Catch::Contains("--nics N"));
  for (const char* gpu : {"rtx-3090", "v100-pcie-32gb"}) {
    INFO(gpu);
    const std::string text = own_node({.gpu = gpu, .gpus = 8});
    CHECK_THAT(text, !Catch::Contains(", nvswitch]") && !Catch::Contains("link: nvlink") &&
                         !Catch::Contains("nic: efa") && !Catch::Contains("\nnetwork:"));
    const Node node = read_text(text);
    // Each GPU on a root port: eight links to two sockets, and one between these.
    CHECK(node.links.size() == 8 + 1);
    CHECK(node.network.nics_per_node == 0);
    CHECK(node.peer_to_peer.value_or(node.gpu.peer_access) == (std::string(gpu) != "rtx-3090"));
    CHECK(node.link_types[static_cast<std::size_t>(node.links.front().type)].name == node.gpu.slot);
    // cpu, wiring and storage.
    REQUIRE(node.assumed.size() == 3);
    CHECK_THAT(node.assumed[0], Catch::Contains("each GPU on a root port of its own, " + node.gpu.slot));
  }
}

TEST_CASE("A machine brings no links that its GPU does not have, and a board says how it joins its own") {
  CHECK_THROWS_WITH(
      own_node({.gpu = "a100-pcie-80gb", .gpus = 4, .links = GpuLinks::nvlink_mesh}),
      Catch::Contains("has NVLink by bridges between two cards alone; write --links nvlink-bridge or pcie"));
  CHECK_THROWS_WITH(own_node({.gpu = "v100-sxm2-32gb", .gpus = 8}), Catch::Contains("how are GPUs joined? --links "));
  // Bridges join cards in pairs: two of them for four cards, each of four links.
  const Node pairs = read_text(own_node({.gpu = "a6000", .gpus = 4, .links = GpuLinks::nvlink_bridge}));
  CHECK(pairs.links.size() == 2 + 4);
  CHECK(pairs.links.front().count == 4);
}

TEST_CASE("A machine of the catalogue takes another name and nothing else; cards without a speed are refused") {
  CHECK_THAT(own_node({.name = "mine", .like = "dgx-h100"}), Catch::Contains("\nname: mine "));
  CHECK_THROWS_WITH(own_node({.like = "dgx-h100", .nics = 2}), Catch::Contains("change it there"));
  CHECK_THROWS_WITH(own_node({.gpu = "l40s", .gpus = 2, .nics = 2}), Catch::Contains("--nics: how fast are they?"));
}

}  // namespace foretrain::test
