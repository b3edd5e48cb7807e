// NCCL's topologies at their limits: slots, clouds' GPUs, and how many there may be. Small ones: rows/topologies.txt.
#include "tests/catch.hpp"
#include "tests/import/samples.hpp"

using namespace foretrain;
using namespace foretrain::test;

namespace {

std::string topology(const std::string& devices) {
  return import_text("nccl-topology", "<system version=\"1\"><cpu numaid=\"0\">" + devices + "</cpu></system>");
}

/// A GPU of sm 80 at bus "gN".
std::string gpu(int bus, const std::string& slot = "") {
  return fmt::format(R"(<pci busid="g{}" {}><gpu dev="{}" sm="80"/></pci>)", bus, slot, bus);
}

/// The word behind the first "KEY: ".
std::string word_behind(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key + ": ") + key.size() + 2;
  return text.substr(at, text.find(' ', at) - at);
}

}  // namespace

TEST_CASE("slots are of the PCIe whose rate they have, of lanes that a wiring knows") {
  // sm 80, an A100, is PCIe 4 and no faster; what is hidden is as the GPU has it; PCIe 6 has four lanes at least.
  const std::tuple<const char*, int, const char*> slots[] = {
      {"2.5", 16, "pcie3-x16"},  {"8.0", 16, "pcie3-x16"},  {"9.0", 16, "pcie3-x16"},   {"16.0", 16, "pcie4-x16"},
      {"17.0", 16, "pcie4-x16"}, {"32.0", 16, "pcie4-x16"}, {"8.0", 15, "pcie3-x8"},    {"8.0", 8, "pcie3-x8"},
      {"8.0", 7, "pcie3-x4"},    {"8.0", 4, "pcie3-x4"},    {"8.0", 3, "pcie3-x1"},     {"64.0", 1, "pcie4-x16"},
      {"8.0", 0, "pcie4-x16"},   {"0.0", 8, "pcie4-x16"},   {"Unknown", 8, "pcie4-x16"}};
  for (const auto& [rate, width, expected] : slots) {
    const std::string slot = fmt::format("link_speed=\"{} GT/s PCIe\" link_width=\"{}\"", rate, width);
    INFO(slot);
    CHECK(word_behind(topology(gpu(0, slot)), "link") == expected);
  }
}

TEST_CASE("a cloud's GPU is identified by the rate of its slot") {
  // Of PCIe 5 the machine of one GPU is h200-x1.
  const std::pair<const char*, const char*> gpus[] = {{"8.0", "v100-sxm2-16gb"},
                                                      {"9.0", "v100-sxm2-16gb"},
                                                      {"16.0", "a100-sxm-40gb"},
                                                      {"17.0", "a100-sxm-40gb"},
                                                      {"32.0", "h200-sxm-141gb"}};
  for (const auto& [rate, expected] : gpus) {
    INFO(rate);
    CHECK(
        word_behind(topology(fmt::format(R"(<pci busid="g" class="0x030200" link_speed="{}" link_width="16"/>)", rate)),
                    "\ngpu") == expected);
  }
}

TEST_CASE("a machine has at most 16 processors, 256 GPUs, and switches below 32 others") {
  std::string processors = "</cpu>", gpus, below = gpu(0);
  for (int i = 1; i < 16; ++i) processors += "<cpu></cpu>";
  processors.resize(processors.size() - std::string_view("</cpu>").size());  // which topology() closes
  CHECK_THAT(topology(gpu(0) + processors), Catch::Contains("\n  sockets: 16\n"));
  CHECK_THROWS_WITH(topology(gpu(0) + processors + "</cpu><cpu>"), Catch::Contains("more than 16 processors"));
  for (int i = 0; i < 256; ++i) gpus += gpu(i);
  CHECK_THAT(topology(gpus), Catch::Contains("between: [gpu0..gpu255, cpu0]"));
  CHECK_THROWS_WITH(topology(gpus + gpu(256)), Catch::Contains("more than 256 GPUs"));
  const auto in_switch = [](const std::string& part) {
    return R"(<pci busid="b" class="0x060400">)" + part + "</pci>";
  };
  for (int i = 0; i < 32; ++i) below = in_switch(below);
  CHECK_THAT(topology(below), Catch::Contains("between: [gpu0, plx31]"));
  CHECK_THROWS_WITH(topology(in_switch(below)), Catch::Contains("PCIe switches below more than 32 others"));
}
