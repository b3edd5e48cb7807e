// Machines as importers and `hardware init` understand them, small ones as a whole.
#include "reports/import/node_draft.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

TEST_CASE("a driver's name is that of one GPU of the catalogue, or of none") {
  const std::pair<const char*, const char*> names[] = {
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"},
      {"NVIDIA H100 80GB HBM3", "h100-sxm-80gb"},
      {"NVIDIA H100 PCIe", "h100-pcie-80gb"},
      {"NVIDIA H100 NVL", "h100-nvl-94gb"},
      {"NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"},
      {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb"},
      {"Tesla V100-SXM2-32GB", "v100-sxm2-32gb"},
      {"Tesla V100-PCIE-32GB", "v100-pcie-32gb"},
      {"Tesla T4", "t4"},
      {"NVIDIA A10G", "a10g"},
      {"NVIDIA A10", "a10"},
      {"NVIDIA RTX A6000", "a6000"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
      {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA B200", "b200-sxm-180gb"}};
  for (const auto& [driver, catalogue] : names) {
    INFO(driver);
    CHECK(gpu_of_name(driver).value_or("none") == catalogue);
  }
  for (const char* other : {"NVIDIA GeForce RTX 3080 Ti", "NVIDIA GeForce RTX 4080 SUPER", "Quadro RTX 6000", ""}) {
    INFO(other);
    CHECK_FALSE(gpu_of_name(other));
  }
}

TEST_CASE("of two slots the narrower is the one of fewer lanes times the rate of its PCIe") {
  CHECK(narrower_slot("pcie4-x16", "pcie3-x16") == "pcie3-x16");
  CHECK(narrower_slot("pcie4-x8", "pcie3-x16") == "pcie4-x8");  // 8 lanes of 16 GT/s are 16 of 8
  CHECK(narrower_slot("pcie4-x4", "pcie3-x16") == "pcie4-x4");
  CHECK(narrower_slot("pcie5-x16", "pcie5-x8") == "pcie5-x8");
  CHECK(narrower_slot("nvlink-c2c", "pcie5-x16") == "pcie5-x16");
}

TEST_CASE("sockets are joined as in the machine that is nearest, else as processors of its maker are") {
  const auto joined = [](const std::string& node) {
    const ToldLink link = socket_link(parse_yaml(node, "node.yaml"));
    return fmt::format("{} x {}", link.count, link.type);
  };
  const std::string wired =
      "cpu: { name: AMD EPYC }\nwiring:\n  - { link: a, count: 9 }\n  - { between: [cpu0], link: b }\n";
  CHECK(joined(wired) == "2 x xgmi");
  CHECK(joined(wired + "  - { between: [gpu0, cpu1], link: c }\n  - { between: [cpu0, plx0], link: d }\n") ==
        "2 x xgmi");
  CHECK(joined(wired + "  - { between: [cpu0, cpu1], link: e, count: 3 }\n") == "3 x e");
  CHECK(joined(wired + "  - { between: [cpu0, cpu1], link: e }\n") == "1 x e");
  CHECK(joined("cpu: { name: Intel Xeon }\n") == "2 x upi");
}
