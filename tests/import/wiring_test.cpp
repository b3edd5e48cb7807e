// Machines and switches as importers understand them, small ones as a whole.
#include "model/base/text.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "reports/import/node_draft.hpp"
#include "reports/import/own_node.hpp"
#include "tests/base/temporary_folder.hpp"
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

/// Its GPU and sockets, then links, a line for those of one kind that follow each other, then cards.
std::string wiring_of(const std::string& text) {
  const Node node = read_node(Field(parse_yaml(text, "imported.yaml"), ""));
  std::string words = fmt::format("\n{} x {}, {} sockets", node.gpus, node.gpu.name, node.cpu.sockets), before;
  for (const NodeLink& link : node.links) {
    const std::string kind = fmt::format("{} x {}", link.count, node.link_types[at_index(link.type)].name);
    words += kind == before ? ", " : "\n" + kind + ": ";
    words += node.vertices[at_index(link.a)].name + "-" + node.vertices[at_index(link.b)].name;
    before = kind;
  }
  words += "\n";
  for (const int place : node.nic_attachment) words += "card on " + node.vertices[at_index(place)].name + "\n";
  return words;
}

std::string smi(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return wiring_of(import_text("nvidia-smi", text, overrides));
}
const std::vector<std::string> a100_cards = {"gpu=a100-pcie-80gb"};

/// Nodes below leaves and pods, as the file says it.
std::string fabric_of(const std::string& text) {
  const std::string all = import_text("slurm", text);
  std::string words;
  for (const char* key : {"kind", "nodes_per_leaf", "nodes_per_pod"}) {
    const std::size_t at = all.find("\n" + std::string(key) + ": ");
    if (at != std::string::npos) words += all.substr(at + 1, all.find('\n', at + 1) - at - 1) + "\n";
  }
  return words;
}

}  // namespace

TEST_CASE("a matrix of nvidia-smi becomes switches for what is one bridge apart, and sockets above them") {
  CHECK(smi("\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
            "GPU0\tX\tPHB\tPIX\tSYS\t0-3\t0\n"
            "GPU1\tPHB\tX\tPHB\tSYS\t0-3\t0\n"
            "NIC0\tPIX\tPHB\tX\tSYS\n"
            "NIC1\tSYS\tSYS\tSYS\tX\n",
            a100_cards) == R"(
2 x a100-pcie-80gb, 1 sockets
1 x pcie4-x16: plx0-cpu0, gpu0-plx0, gpu1-cpu0
card on plx0
)");
  // Two GPUs with four links to each other, on sockets of their own: NV4 says nothing of the PCIe tree.
  CHECK(smi("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tNV4\t0-3\t0\nGPU1\tNV4\tX\t4-7\t1\n") == R"(
2 x a40, 2 sockets
4 x nvlink3-x4: gpu0-gpu1
1 x pcie4-x16: gpu0-cpu0, gpu1-cpu1
2 x xgmi: cpu0-cpu1
)");
  // Several bridges apart: a switch above those of one bridge.
  CHECK(smi("\tGPU0\tGPU1\tGPU2\tCPU\nGPU0\tX\tPIX\tPXB\nGPU1\tPIX\tX\tPXB\nGPU2\tPXB\tPXB\tX\n", a100_cards) == R"(
3 x a100-pcie-80gb, 1 sockets
1 x pcie4-x16: plx0-cpu0, plx1-plx0, gpu0-plx1, gpu1-plx1, gpu2-plx0
)");
  CHECK(smi("\tGPU0\tGPU1\tGPU2\tCPU\nGPU0\tX\tNV12\tNV12\nGPU1\tNV12\tX\tNV12\nGPU2\tNV12\tNV12\tX\n") == R"(
3 x a100-sxm-40gb, 3 sockets
12 x nvlink3: gpu0-nvswitch, gpu1-nvswitch, gpu2-nvswitch
1 x pcie4-x16: gpu0-cpu0, gpu1-cpu1, gpu2-cpu2
3 x xgmi: cpu0-cpu1, cpu0-cpu2, cpu1-cpu2
)");
  CHECK(smi("\tGPU0\tGPU1\tGPU2\tCPU\nGPU0\tX\tNV6\tNV6\nGPU1\tNV6\tX\tSYS\nGPU2\tNV6\tSYS\tX\n") == R"(
3 x a100-sxm-40gb, 3 sockets
6 x nvlink3: gpu0-gpu1, gpu0-gpu2
1 x pcie4-x16: gpu0-cpu0, gpu1-cpu1, gpu2-cpu2
3 x xgmi: cpu0-cpu1, cpu0-cpu2, cpu1-cpu2
)");
  CHECK(smi("\x1b[4mGPU0\x1b[0m\tCPU Affinity\nGPU0\tX\t0-3\n", a100_cards) == R"(
1 x a100-pcie-80gb, 1 sockets
1 x pcie4-x16: gpu0-cpu0
)");
}

TEST_CASE("how many NVLinks a GPU has tells which it is, and more than eighteen in all lead through switches") {
  // As many GPUs, any two of them joined by so many links.
  const auto gpu_of = [](int gpus, int links) {
    std::string text;
    for (int i = 0; i < gpus; ++i) text += fmt::format("\tGPU{}", i);
    text += "\tCPU\n";
    for (int a = 0; a < gpus; ++a) {
      text += fmt::format("GPU{}", a);
      for (int b = 0; b < gpus; ++b) text += a == b ? "\tX" : fmt::format("\tNV{}", links);
      text += "\n";
    }
    const std::string wiring = smi(text);
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
  CHECK_THROWS_WITH(smi(four), Catch::Contains("nothing tells which GPUs these are; --set gpu=NAME"));
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
  const auto apart = [](int gpus) {
    std::string text;
    for (int i = 0; i < gpus; ++i) text += fmt::format("\tGPU{}", i);
    text += "\tCPU\n";
    for (int a = 0; a < gpus; ++a) {
      text += fmt::format("GPU{}", a);
      for (int b = 0; b < gpus; ++b) text += a == b ? "\tX" : "\tSYS";
      text += "\n";
    }
    return text;
  };
  CHECK_THAT(smi(apart(16), a100_cards), Catch::Contains("16 sockets"));
  CHECK_THROWS_WITH(smi(apart(17), a100_cards), Catch::Contains("GPU16: more than 16 sockets"));
  CHECK_THROWS_WITH(smi("\tGPU0\tGPU1\tCPU\nGPU0\tX\tNV1025\nGPU1\tNV1025\tX\n"),
                    Catch::Contains(":2:1: GPU0: column 2 says \"NV1025\""));
  CHECK_THROWS_WITH(smi("\tGPU0\tGPU1\tCPU\nGPU0\tX\tSYS\nGPU1\tSYS\n"),
                    Catch::Contains(":3:1: GPU1: column 2 says \"\""));
}

TEST_CASE("lists of Slurm's hosts have ranges, zeros before numbers, and names behind brackets") {
  CHECK(fabric_of("SwitchName=a Nodes=n[0-3,7],m,x[08-11]-ib\nSwitchName=b Nodes=k[1-10]\n") == R"(kind: fat_tree
nodes_per_leaf: 10  # line 1: each of 2
)");
  CHECK(fabric_of("SwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=n[0-3]\n") == "kind: single_switch\n");
  CHECK(fabric_of("SwitchName=a Nodes=a,b,a\nSwitchName=b Nodes=c,d\nSwitchName=t switches=a,b # Nodes=x\n") ==
        R"(kind: fat_tree
nodes_per_leaf: 2  # line 1: each of 2
)");
  CHECK(
      fabric_of("SwitchName=s[0] Nodes=a\nSwitchName=b Nodes=c\nSwitchName=p Switches=b\nSwitchName=q Switches=b\n") ==
      R"(kind: fat_tree
nodes_per_leaf: 1  # line 1: each of 2
)");
  CHECK(fabric_of("SwitchName=a Nodes=n[1-19999]\nSwitchName=b Nodes=x\n") == R"(kind: fat_tree
nodes_per_leaf: 19999  # line 1: the largest of 2; the smallest has 1
)");
  CHECK(fabric_of("SwitchName=a Nodes=b,c,b,c\nSwitchName=b Nodes=x,y\n") == R"(kind: fat_tree
nodes_per_leaf: 2  # line 1: each of 2
)");
  // A host that is named twice is one.
  CHECK(fabric_of("SwitchName=a Nodes=y,x[1-2]-ib,x1-ib,w[3],w3\nSwitchName=b Nodes=c,d,e,f\n") == R"(kind: fat_tree
nodes_per_leaf: 4  # line 1: each of 2
)");
  // Zeros before a number belong to the name: x08 is not x8.
  CHECK(fabric_of("SwitchName=a Nodes=x[08-09],x08,x8\nSwitchName=b Nodes=c,d,e\n") == R"(kind: fat_tree
nodes_per_leaf: 3  # line 1: each of 2
)");
  CHECK_THROWS_WITH(fabric_of("SwitchName=a Nodes=n[1-20000],m\n"), Catch::Contains("more than 20,000 hosts"));
  CHECK_THROWS_WITH(fabric_of("SwitchName=a Nodes=n[1-20000]\nSwitchName=b Nodes=x\n"),
                    Catch::Contains("more than 20,000 hosts"));
  CHECK_THROWS_WITH(fabric_of("SwitchName=a Nodes=n[0-20001]\n"),
                    Catch::Contains("\"n[0-20001]\" is no list of hosts"));
  CHECK_THROWS_WITH(fabric_of("SwitchName=a Nodes=n[1-2\n"), Catch::Contains("is no list of hosts"));
  CHECK_THROWS_WITH(fabric_of("SwitchName=a Nodes=x[2-1]-ib\n"), Catch::Contains("\"x[2-1]-ib\" is no list of hosts"));
  CHECK_THROWS_WITH(fabric_of("SwitchName=a Nodes=\n"), Catch::Contains("a leaf switch without machines"));
}

TEST_CASE("Slurm's switches stand at most eight above one another, and they count among 20,000 names") {
  const auto above = [](int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += fmt::format("SwitchName=s{} Switches=s{}\n", i, i + 1);
    return text + fmt::format("SwitchName=s{} Nodes=a,b\n", levels);
  };
  CHECK(fabric_of(above(8)) == "kind: single_switch\n");
  CHECK_THROWS_WITH(fabric_of(above(9)), Catch::Contains("switches in a circle"));
  CHECK_NOTHROW(fabric_of("SwitchName=s Switches=a\nSwitchName=a Nodes=n[1-19999]\n"));
  CHECK_THROWS_WITH(fabric_of("SwitchName=s Switches=a\nSwitchName=a Nodes=n[1-20000]\n"),
                    Catch::Contains("more than 20,000 hosts and switches"));
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
  CHECK(wiring_of(own_node({.like = "dgx-h100", .gpus = 2})) == R"(
2 x h100-sxm-80gb, 2 sockets
18 x nvlink4: gpu0-nvswitch, gpu1-nvswitch
1 x pcie5-x16: gpu0-plx0, gpu1-plx0, plx0-cpu1
4 x upi2: cpu0-cpu1
card on plx0
)");
  CHECK(wiring_of(own_node({.like = "dgx-h100", .gpus = 1, .nics = 1, .links = GpuLinks::nvswitch})) == R"(
1 x h100-sxm-80gb, 2 sockets
1 x pcie5-x16: gpu0-plx0, plx0-cpu1
4 x upi2: cpu0-cpu1
card on plx0
)");
  CHECK_THROWS_WITH(own_node({.gpu = "a100-sxm-80gb", .gpus = 14, .links = GpuLinks::nvlink_mesh}),
                    Catch::Contains("at most 13 GPUs"));
  CHECK_NOTHROW(own_node({.gpu = "a100-sxm-80gb", .gpus = 13, .links = GpuLinks::nvlink_mesh}));
}

TEST_CASE("direct links of as many GPUs are those of the machine that one's own is like, others shared evenly") {
  const auto links_of = [](const OwnNode& own, const char* kind) {
    std::string text;
    for (const std::string& line : split(wiring_of(own_node(own)), '\n')) {
      if (line.find(kind) != std::string::npos) text += line + "\n";
    }
    return text;
  };
  const OwnNode base{.like = "dgx1-v100-32gb"}, two{.like = "dgx1-v100-32gb", .switches = 2};
  CHECK(!links_of(base, "nvlink").empty());
  CHECK(links_of(two, "nvlink") == links_of(base, "nvlink"));
  CHECK_THAT(links_of(two, "pcie"),
             Catch::Contains("gpu0-plx0, gpu1-plx0, gpu2-plx0, gpu3-plx0, gpu4-plx1, gpu5-plx1, gpu6-plx1, gpu7-plx1"));
  // Six links of a V100: two to each of three others.
  CHECK(links_of({.like = "dgx1-v100-32gb", .gpus = 4, .links = GpuLinks::nvlink_mesh}, "nvlink") ==
        "2 x nvlink2: gpu0-gpu1, gpu0-gpu2, gpu0-gpu3, gpu1-gpu2, gpu1-gpu3, gpu2-gpu3\n");
}

TEST_CASE("fewer GPUs keep a switch, and a machine without a network gets one that is stated") {
  // One switch for four GPUs is one for a single one, which the file names alone.
  const std::string one = own_node({.like = "pcie-switch-16gbps-x4", .gpus = 1});
  CHECK_THAT(one, Catch::Contains("between: [gpu0, plx0]") && Catch::Contains("between: [plx0, cpu0]"));
  CHECK_THAT(one, Catch::Contains("# Physical cores, of all sockets together."));
  const TemporaryFolder folder;
  const std::string plain = folder.write("plain.yaml", own_node({.like = "dgx-h100", .nics = 0})).string();
  CHECK_THAT(own_node({.like = plain, .nic_bandwidth = "100 Gbit/s"}),
             Catch::Contains("\n  nics_per_node: 1 ") && Catch::Contains("\n  latency: 5 us "));
  CHECK_THAT(own_node({.like = plain, .nic_bandwidth = "100 Gbit/s", .nics = 3}),
             Catch::Contains("\n  nics_per_node: 3 "));
  CHECK_THAT(own_node({.like = plain}), !Catch::Contains("\nnetwork:"));
  CHECK_THROWS_WITH(own_node({.like = plain, .nics = 2}), Catch::Contains("--nics: how fast are they?"));
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

TEST_CASE("the file of a machine of one's own says what is assumed, and as which machine") {
  const std::string text = own_node({.like = "dgx-h100", .sockets = 4, .nics = 0});
  CHECK_THAT(text, Catch::Contains("Assumed: as dgx-h100, by the number of sockets.") &&
                       Catch::Contains("own machine: 8 x h100-sxm-80gb") &&
                       Catch::Contains("Assumed: how sockets are joined in dgx-h100.") && !Catch::Contains("network:"));
  CHECK_THAT(own_node({.like = "dgx-h100"}), !Catch::Contains("own machine") && !Catch::Contains("Assumed: as"));
}
