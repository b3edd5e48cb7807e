// NCCL's topologies of a few devices: slots, numbers, links of GPUs, cards and switches, and how many there may be.
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

std::string system_of(const std::string& devices) {
  return "<system version=\"1\"><cpu numaid=\"0\">" + devices + "</cpu></system>";
}

/// A GPU of sm 80 at bus "gN", with a number for NCCL and what is inside its element.
std::string gpu(int bus, int number, const std::string& slot = "", const std::string& links = "") {
  return fmt::format(R"(<pci busid="g{}" {}><gpu dev="{}" sm="80">{}</gpu></pci>)", bus, slot, number, links);
}

std::string nvlink(const char* target, int count, const char* other_end = "0x030200") {
  return fmt::format(R"(<nvlink target="{}" count="{}" tclass="{}"/>)", target, count, other_end);
}

std::string card(const char* speed, int gdr = 0) {
  return fmt::format(R"(<pci busid="c"><nic><net speed="{}" gdr="{}"/></nic></pci>)", speed, gdr);
}

/// The entries of a key at the beginning of a line, without what the importer assumes.
std::string part_of(const std::string& text, const std::string& key) {
  const std::size_t begin = text.find("\n" + key + ":\n");
  if (begin == std::string::npos) return "\n";
  std::string part = "\n";
  for (std::size_t at = begin + key.size() + 3; at < text.size() && text[at] == ' '; at = text.find('\n', at) + 1) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    if (line.find("# assumed") == std::string::npos) part += line.substr(0, line.find("  #")) + "\n";
  }
  return part;
}

std::string wiring_in(const std::string& devices) {
  return part_of(import_text("nccl-topology", system_of(devices)), "wiring");
}
std::string network_in(const std::string& devices) {
  const std::string text = import_text("nccl-topology", system_of(devices));
  return part_of(text, "network") + part_of(text, "nics").substr(1);
}

/// The link of a GPU's slot of this rate and width.
std::string slot_of_gpu(const char* rate, int width) {
  const std::string wiring =
      wiring_in(gpu(0, 0, fmt::format("link_speed=\"{} GT/s PCIe\" link_width=\"{}\"", rate, width)));
  const std::size_t at = wiring.find("link: ") + 6;
  return wiring.substr(at, wiring.find(' ', at) - at);
}

}  // namespace

TEST_CASE("slots are of the PCIe whose rate they have, of lanes that a wiring knows") {
  CHECK(slot_of_gpu("2.5", 16) == "pcie3-x16");
  CHECK(slot_of_gpu("8.0", 16) == "pcie3-x16");
  CHECK(slot_of_gpu("9.0", 16) == "pcie3-x16");
  CHECK(slot_of_gpu("16.0", 16) == "pcie4-x16");
  CHECK(slot_of_gpu("17.0", 16) == "pcie4-x16");
  CHECK(slot_of_gpu("32.0", 16) == "pcie4-x16");  // sm 80, an A100, has no faster one
  CHECK(slot_of_gpu("64.0", 16) == "pcie4-x16");
  CHECK(slot_of_gpu("8.0", 15) == "pcie3-x8");
  CHECK(slot_of_gpu("8.0", 8) == "pcie3-x8");
  CHECK(slot_of_gpu("8.0", 7) == "pcie3-x4");
  CHECK(slot_of_gpu("8.0", 4) == "pcie3-x4");
  CHECK(slot_of_gpu("8.0", 3) == "pcie3-x1");
  CHECK(slot_of_gpu("64.0", 1) == "pcie4-x16");  // four lanes at least, of four times the rate
  // What is hidden is as the GPU has it: sm 80 is PCIe 4.
  CHECK(slot_of_gpu("8.0", 0) == "pcie4-x16");
  CHECK(slot_of_gpu("0.0", 8) == "pcie4-x16");
  CHECK(slot_of_gpu("Unknown", 8) == "pcie4-x16");
}

TEST_CASE("GPUs have NCCL's numbers where these are 0, 1, 2, else the file's order") {
  const auto order = [](int first, int second) {
    return wiring_in(gpu(0, first, R"(link_speed="8" link_width="8")") + gpu(1, second));
  };
  const std::string of_file = R"(
  - { between: [gpu0, cpu0], link: pcie3-x8 }
  - { between: [gpu1, cpu0], link: pcie4-x16 }
)";
  CHECK(order(0, 1) == of_file);
  CHECK(order(1, 0) == R"(
  - { between: [gpu1, cpu0], link: pcie3-x8 }
  - { between: [gpu0, cpu0], link: pcie4-x16 }
)");
  CHECK(order(1, 1) == of_file);
  CHECK(order(0, 0) == of_file);
  CHECK(order(2, 0) == of_file);
  CHECK(order(2, 1) == of_file);
  CHECK_THROWS_WITH(wiring_in(gpu(0, 0) + gpu(0, 1)), Catch::Contains("busid: a second g0"));
}

TEST_CASE("of three GPUs the numbers count where each is there once") {
  const auto wiring = [](int first, int second, int third) {
    return wiring_in(gpu(0, first, R"(link_speed="8" link_width="8")") + gpu(1, second) + gpu(2, third));
  };
  const std::string of_file = R"(
  - { between: [gpu0, cpu0], link: pcie3-x8 }
  - { between: [gpu1..gpu2, cpu0], link: pcie4-x16 }
)";
  CHECK(wiring(0, 1, 2) == of_file);
  CHECK(wiring(2, 0, 1) != of_file);
  CHECK(wiring(2, 0, 0) == of_file);   // the last, but one twice
  CHECK(wiring(2, 1, -1) == of_file);  // the last, but not the first
  CHECK(wiring(3, 1, 0) == of_file);
}

TEST_CASE("links between GPUs are counted once, those to switches together, those to GPUs that are not there not") {
  CHECK(wiring_in(gpu(0, 0, "", nvlink("g1", 2) + nvlink("g1", 3) + nvlink("g0", 4)) +
                  gpu(1, 1, "", nvlink("g0", 5))) == R"(
  - { between: [gpu0, gpu1], link: nvlink3, count: 5 }
  - { between: [gpu0..gpu1, cpu0], link: pcie4-x16 }
)");
  CHECK(wiring_in(gpu(0, 1, "", nvlink("g1", 2)) + gpu(1, 0)) == R"(
  - { between: [gpu1, gpu0], link: nvlink3, count: 2 }
  - { between: [gpu1, cpu0], link: pcie4-x16 }
  - { between: [gpu0, cpu0], link: pcie4-x16 }
)");
  // Stated at the second end alone, among three.
  CHECK(wiring_in(gpu(0, 0) + gpu(1, 1, "", nvlink("g0", 1)) + gpu(2, 2, "", nvlink("g0", 1) + nvlink("g1", 1))) == R"(
  - { between: [gpu1, gpu0], link: nvlink3 }
  - { between: [gpu2, gpu0], link: nvlink3 }
  - { between: [gpu2, gpu1], link: nvlink3 }
  - { between: [gpu0..gpu2, cpu0], link: pcie4-x16 }
)");
  CHECK(wiring_in(gpu(0, 0, "", nvlink("s0", 1000, "0x068000") + nvlink("s1", 1000, "0x068000"))) == R"(
  - { between: [gpu0, nvswitch], link: nvlink3, count: 1024 }
  - { between: [gpu0, cpu0], link: pcie4-x16 }
)");
  CHECK(wiring_in(gpu(0, 0, "", nvlink("g1", 1024)) + gpu(1, 1)) == R"(
  - { between: [gpu0, gpu1], link: nvlink3, count: 1024 }
  - { between: [gpu0..gpu1, cpu0], link: pcie4-x16 }
)");
  CHECK_THROWS_WITH(wiring_in(gpu(0, 0, "", nvlink("g1", 1025)) + gpu(1, 1)), Catch::Contains("1025 links; 1 to 1024"));
  CHECK_THROWS_WITH(wiring_in(gpu(0, 0, "", nvlink("g1", 0)) + gpu(1, 1)), Catch::Contains("0 links; 1 to 1024"));
  CHECK_THAT(import_text("nccl-topology", system_of(gpu(0, 0, "", nvlink("far", 2)))),
             Catch::Contains("# gpu0: a link of nvlink to far, which is no part of the file, is left out\n"));
}

TEST_CASE("cards of the highest speed are for collectives, with what it tells of GPUs") {
  CHECK(network_in(gpu(0, 0) + card("100000", 1) + card("100000", 1) + card("99999")) == R"(
  nics_per_node: 2
  nic_bandwidth: 100 Gbit/s
  gpu_direct: true
  attached_to: [cpu0, cpu0]
  link: pcie4-x16
)");
  CHECK(network_in(gpu(0, 0) + card("1") + card("0.9") + card("100000001")) == R"(
  nics_per_node: 1
  nic_bandwidth: 0.001 Gbit/s
  gpu_direct: false
  attached_to: [cpu0]
  link: pcie4-x16
)");
  CHECK_THAT(network_in(gpu(0, 0) + card("100000000") + card("1")),
             Catch::Contains("nics_per_node: 1\n") && Catch::Contains("nic_bandwidth: 100000 Gbit/s\n"));
  CHECK(network_in(gpu(0, 0) + card("0")) == "\n  nics_per_node: 0\n");
  const std::string text = import_text("nccl-topology", system_of(gpu(0, 0) + card("9") + card("8") + card("7")));
  CHECK_THAT(text, Catch::Contains("# 2 slower network cards are left out\n"));
  CHECK_THAT(import_text("nccl-topology", system_of(gpu(0, 0) + card("9"))), !Catch::Contains("are left out"));
  // A card of a class alone counts where the file is a cloud's, whose GPUs have no element of their own.
  const std::string plain = R"(<pci busid="n" class="0x020000" link_speed="16" link_width="8"/>)";
  CHECK(network_in(gpu(0, 0) + plain) == "\n  nics_per_node: 0\n");
  CHECK(network_in(R"(<pci busid="g" class="0x030200" link_speed="16" link_width="16"/>)" + plain) == R"(
  nics_per_node: 1
  attached_to: [cpu0]
  link: pcie4-x8
)");
}

TEST_CASE("a cloud's GPU is told by the rate of its slot") {
  const auto gpu_in = [](const char* rate) {
    const std::string text = import_text(
        "nccl-topology",
        system_of(fmt::format(R"(<pci busid="g" class="0x030200" link_speed="{}" link_width="16"/>)", rate)));
    const std::size_t at = text.find("\ngpu: ") + 6;
    return text.substr(at, text.find(' ', at) - at);
  };
  CHECK(gpu_in("8.0") == "v100-sxm2-16gb");
  CHECK(gpu_in("9.0") == "v100-sxm2-16gb");
  CHECK(gpu_in("16.0") == "a100-sxm-40gb");
  CHECK(gpu_in("17.0") == "a100-sxm-40gb");
  CHECK(gpu_in("32.0") == "h200-sxm-141gb");  // the machine of one GPU: h200-x1
  CHECK_THAT(import_text("nccl-topology",
                         system_of(R"(<pci busid="g"><gpu dev="0" gcn="gfx942"><xgmi target="x"/></gpu></pci>)")),
             Catch::Contains("\ngpu: mi300x-192gb  # line 1: assumed of gcn gfx942\n"));
}

TEST_CASE("switches stay where something that counts hangs on them, however far below") {
  const auto bridge = [](const std::string& below) { return R"(<pci busid="b" class="0x060400">)" + below + "</pci>"; };
  CHECK(wiring_in(bridge(gpu(0, 0)) + bridge(bridge(card("8"))) + bridge(card("9")) + bridge("")) == R"(
  - { between: [plx0, cpu0], link: pcie4-x16 }
  - { between: [gpu0, plx0], link: pcie4-x16 }
  - { between: [plx3, cpu0], link: pcie4-x16 }
)");
  CHECK_THAT(network_in(bridge(gpu(0, 0)) + bridge(bridge(card("9")))), Catch::Contains("attached_to: [plx2]\n"));
}

TEST_CASE("a machine has at most 16 processors, 256 GPUs, and switches below 32 others") {
  const auto processors = [](int number) {
    std::string text = R"(<system version="1"><cpu>)" + gpu(0, 0) + "</cpu>";
    for (int i = 1; i < number; ++i) text += "<cpu/>";
    return text + "</system>";
  };
  CHECK_THAT(import_text("nccl-topology", processors(16)), Catch::Contains("\n  sockets: 16\n"));
  CHECK_THROWS_WITH(import_text("nccl-topology", processors(17)), Catch::Contains("more than 16 processors"));
  CHECK_THROWS_WITH(import_text("nccl-topology", "<system><pci busid=\"g\"><gpu sm=\"80\"/></pci></system>"),
                    Catch::Contains("no processor"));
  const auto gpus = [](int number) {
    std::string text;
    for (int i = 0; i < number; ++i) text += gpu(i, i);
    return text;
  };
  CHECK_THAT(wiring_in(gpus(256)), Catch::Contains("between: [gpu0..gpu255, cpu0]"));
  CHECK_THROWS_WITH(wiring_in(gpus(257)), Catch::Contains("more than 256 GPUs"));
  const auto below = [](int switches) {
    std::string text = gpu(0, 0);
    for (int i = 0; i < switches; ++i) text = R"(<pci busid="b" class="0x060400">)" + text + "</pci>";
    return text;
  };
  CHECK_THAT(wiring_in(below(32)), Catch::Contains("between: [gpu0, plx31]"));
  CHECK_THROWS_WITH(wiring_in(below(33)), Catch::Contains("PCIe switches below more than 32 others"));
}
