// Machines and switches as importers understand them, small ones as a whole.
#include "reports/import/node_draft.hpp"
#include "reports/import/own_node.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

std::string smi(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return wiring_of(import_text("nvidia-smi", text, overrides));
}
const std::vector<std::string> a100_cards = {"gpu=a100-pcie-80gb"};

/// As many GPUs, any two of them joined so.
std::string matrix_of(int gpus, const std::string& relation) {
  std::string text;
  for (int i = 0; i < gpus; ++i) text += fmt::format("\tGPU{}", i);
  text += "\tCPU\n";
  for (int a = 0; a < gpus; ++a) {
    text += fmt::format("GPU{}", a);
    for (int b = 0; b < gpus; ++b) text += "\t" + (a == b ? "X" : relation);
    text += "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("what makes letters bold or underlined is no part of a matrix") {
  CHECK(smi("\x1b[4mGPU0\x1b[0m\tCPU Affinity\nGPU0\tX\t0-3\n", a100_cards) == R"(
1 x a100-pcie-80gb, 1 sockets
1 x pcie4-x16: gpu0-cpu0
)");
}

TEST_CASE("how many NVLinks a GPU has tells which it is, and more than eighteen in all lead through switches") {
  const auto gpu_of = [](int gpus, int links) {
    const std::string wiring = smi(matrix_of(gpus, fmt::format("NV{}", links)));
    const std::size_t name = wiring.find(" x ") + 3;
    return wiring.substr(name, wiring.find(',') - name) +
           (wiring.find("nvswitch") != std::string::npos ? ", switched" : "");
  };
  // Two cards with all links of GA102, of TU102, of GA100 to each other: bridges.
  CHECK(gpu_of(2, 4) == "a40");
  CHECK(gpu_of(2, 2) == "rtx-2080-ti");
  CHECK(gpu_of(2, 12) == "a100-pcie-40gb");
  // 3 · 4 links are those of an A100, 3 · 6 of an H100: all that a GPU may have. 7 · 12 are the same twelve to each.
  CHECK(gpu_of(4, 4) == "a100-sxm-40gb");
  CHECK(gpu_of(4, 6) == "h100-sxm-80gb");
  CHECK(gpu_of(8, 12) == "a100-sxm-40gb, switched");
  CHECK(gpu_of(3, 18) == "h100-sxm-80gb, switched");
  CHECK_THROWS_WITH(gpu_of(2, 20), Catch::Contains("no GPU is known by its 20 NVLinks"));
}

TEST_CASE("a matrix without NVLinks names no GPU: its driver's name does, or the user") {
  const std::string four = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tPHB\t0-3\t0\nGPU1\tPHB\tX\t0-3\t0\n";
  CHECK_THROWS_WITH(smi(four), Catch::Contains("the GPU model is unknown; --set gpu=NAME"));
  const std::string text = import_text("nvidia-smi", "GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-1)\n" + four);
  CHECK_THAT(wiring_of(text), Catch::Contains("2 x rtx-4090, 1 sockets"));
  // GeForce have no peer access over PCIe.
  const YamlNode document = parse_yaml(text, "imported.yaml");
  const Node node = read_node(Field(document, ""));
  CHECK_FALSE(node.peer_to_peer.value_or(node.gpu.peer_access));
}

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

TEST_CASE("a matrix has at most sixteen sockets, and no more NVLinks between two than 1,024") {
  CHECK_THAT(smi(matrix_of(16, "SYS"), a100_cards), Catch::Contains("16 sockets"));
  CHECK_THROWS_WITH(smi(matrix_of(17, "SYS"), a100_cards), Catch::Contains("GPU16: more than 16 sockets"));
}

TEST_CASE("Slurm's switches stand at most eight above one another, and they count among 20,000 names") {
  const auto above = [](int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += fmt::format("SwitchName=s{} Switches=s{}\n", i, i + 1);
    return text + fmt::format("SwitchName=s{} Nodes=a,b\n", levels);
  };
  CHECK_THAT(import_text("slurm", above(8)), Catch::Contains("\nkind: single_switch\n"));
  CHECK_THROWS_WITH(import_text("slurm", above(9)), Catch::Contains("switches in a circle"));
  CHECK_NOTHROW(import_text("slurm", "SwitchName=s Switches=a\nSwitchName=a Nodes=n[1-19999]\n"));
}

TEST_CASE("a machine of one's own is wired evenly, whatever does not divide") {
  CHECK(wiring_of(own_node(
            {.gpu = "rtx-4090", .nic_bandwidth = "100 Gbit/s", .gpus = 5, .sockets = 2, .switches = 3, .nics = 2})) ==
        R"(
5 x rtx-4090, 2 sockets
1 x pcie4-x16: gpu0-plx0, gpu1-plx1, gpu2-plx1, gpu3-plx2, gpu4-plx2, plx0-cpu0, plx1-cpu1, plx2-cpu1
2 x xgmi: cpu0-cpu1
card on plx0
card on plx1
)");
  CHECK(wiring_of(own_node(
            {.gpu = "rtx-4090", .nic_bandwidth = "100 Gbit/s", .gpus = 3, .sockets = 2, .switches = 0, .nics = 3})) ==
        R"(
3 x rtx-4090, 2 sockets
1 x pcie4-x16: gpu0-cpu0, gpu1-cpu1, gpu2-cpu1
2 x xgmi: cpu0-cpu1
card on cpu0
card on cpu1
)");
  CHECK(wiring_of(own_node({.gpu = "a100-sxm-80gb",
                            .gpus = 3,
                            .sockets = 1,
                            .switches = 9,
                            .nics = 0,
                            .links = GpuLinks::nvlink_mesh})) == R"(
3 x a100-sxm-80gb, 1 sockets
6 x nvlink3: gpu0-gpu1, gpu0-gpu2, gpu1-gpu2
1 x pcie4-x16: gpu0-plx0, gpu1-plx1, gpu2-plx2, plx0-cpu0, plx1-cpu0, plx2-cpu0
)");
  CHECK(wiring_of(own_node({.gpu = "h100-sxm-80gb", .gpus = 2, .links = GpuLinks::nvswitch})) == R"(
2 x h100-sxm-80gb, 1 sockets
18 x nvlink4: gpu0-nvswitch, gpu1-nvswitch
1 x pcie5-x16: gpu0-cpu0, gpu1-cpu0
)");
  CHECK_NOTHROW(own_node({.gpu = "a100-sxm-80gb", .gpus = 13, .links = GpuLinks::nvlink_mesh}));  // the most
}

TEST_CASE("of two slots the narrower is the one of fewer lanes times the rate of its PCIe") {
  CHECK(narrower_slot("pcie4-x16", "pcie3-x16") == "pcie3-x16");
  CHECK(narrower_slot("pcie4-x8", "pcie3-x16") == "pcie4-x8");  // 8 lanes of 16 GT/s are 16 of 8
  CHECK(narrower_slot("pcie4-x4", "pcie3-x16") == "pcie4-x4");
  CHECK(narrower_slot("pcie5-x16", "pcie5-x8") == "pcie5-x8");
  CHECK(narrower_slot("nvlink-c2c", "pcie5-x16") == "pcie5-x16");
}

TEST_CASE("clouds' topologies are of the machine that has such slots, processors and cards") {
  // Eight GPUs that claim PCIe 4 straight on Skylake, which has PCIe 3, and one InfiniBand card: V100, not A100.
  std::string cpus[2];
  for (int cpu = 0; cpu < 2; ++cpu) {
    for (int gpu = 0; gpu < 4; ++gpu) {
      cpus[cpu] +=
          fmt::format(R"(<pci busid="{}" class="0x030200" link_speed="16 GT/s" link_width="16"/>)", 4 * cpu + gpu);
    }
  }
  const std::string head = R"(<cpu arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">)";
  const std::string card = R"(<pci busid="c" class="0x020700" link_speed="16 GT/s" link_width="16"/>)";
  const std::string v100 = import_text("nccl-topology", "<system version=\"1\">" + head + cpus[0] + card + "</cpu>" +
                                                            head + cpus[1] + "</cpu></system>");
  CHECK_THAT(v100, Catch::Contains("\ngpu: v100-sxm2-32gb") && Catch::Contains("as nd40rs-v2") &&
                       !Catch::Contains("nvswitch"));
  // Eight H100 behind switches with an InfiniBand card each: no Elastic Fabric Adapters.
  std::string switches;
  for (int i = 0; i < 8; ++i) {
    switches += fmt::format(R"(<pci busid="s{0}" class="0x060400" link_speed="32" link_width="16">)"
                            R"(<pci busid="g{0}" class="0x030200" link_speed="32" link_width="16"/>)"
                            R"(<pci busid="c{0}" class="0x020700" link_speed="32" link_width="16"/></pci>)",
                            i);
  }
  const std::string h100 =
      import_text("nccl-topology", R"(<system version="1"><cpu vendor="GenuineIntel" familyid="6" )"
                                   R"(modelid="143">)" +
                                       switches + "</cpu></system>");
  CHECK_THAT(h100, Catch::Contains("\ngpu: h100-sxm-80gb") && Catch::Contains("nic_bandwidth: 400 Gbit/s") &&
                       !Catch::Contains("nic: efa") && !Catch::Contains("p5.48xlarge"));
}

TEST_CASE("sockets are joined as in the machine that is nearest, else as processors of its maker are") {
  const auto joined = [](const std::string& node) {
    const DescribedLink link = socket_link(parse_yaml(node, "node.yaml"));
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
