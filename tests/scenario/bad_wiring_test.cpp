// Machines that nobody can build: each mistake is told at the line of the wiring that makes it.
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

namespace {

/// A machine of eight GPUs on two switches and two sockets; `gpus` and further links as the row has them, marked.
std::string with_links(const std::string& links, const std::string& more = "", const std::string& gpus = "8") {
  return "cluster:\n  nodes: 1\n  node:\n    gpu: a100-sxm-80gb\n    gpus: " + gpus +
         "\n    cpu: { sockets: 2, cores: 64, clock: 2 GHz, memory: 1 TiB, memory_bandwidth: 400 GB/s, fp32_rate: 4 "
         "TFLOP/s, hierarchy: zen-2-epyc }\n    wiring:\n" +
         links + more + "workload: { collective: { operation: all_reduce, size: 1 MB } }\n";
}

const std::string tree =
    "      - { between: [gpu0..gpu3, plx0], link: pcie4-x16 }\n"
    "      - { between: [gpu4..gpu7, plx1], link: pcie4-x16 }\n"
    "      - { between: [plx0, cpu0], link: pcie4-x16 }\n"
    "      - { between: [plx1, cpu1], link: pcie4-x16 }\n"
    "      - { between: [cpu0, cpu1], link: xgmi, count: 3 }\n";

struct Row {
  std::string link;  ///< one more, marked
  std::string_view key, wrong, right;
};

const Row rows[] = {
    {"{ between: ^[plx0, plx1], link: pcie4-x16 }", "wiring[5].between", "plx0 and plx1", "a tree"},
    {"{ between: ^[plx0, cpu1], link: pcie4-x16 }", "wiring[5].between", "plx0 and cpu1 are joined already", "a tree"},
    {"{ between: ^[gpu0, plx0], link: pcie4-x16 }", "wiring[5].between",
     "gpu0 and plx0 are linked by pcie4-x16 already", "count"},
    {"{ between: ^[gpu0, plx1], link: pcie4-x16 }", "wiring[5].between", "gpu0 hangs on plx0 already", "each GPU"},
    {"{ between: ^[gpu0, cpu0], link: pcie4-x8 }", "wiring[5].between", "gpu0 hangs on plx0 already", "each GPU"},
    {"{ between: [gpu0, gpu1], link: ^pcie4-x16 }", "wiring[5].link", "pcie4-x16 between gpu0 and gpu1", "nvlink"},
    {"{ between: [gpu0, plx0], link: ^nvlink3 }", "wiring[5].link", "nvlink3 between gpu0 and plx0", "kind pcie"},
    {"{ between: [gpu0, cpu0], link: ^xgmi }", "wiring[5].link", "xgmi between gpu0 and cpu0", "join processors"},
    {"{ between: [gpu0..gpu7, nvswitch], link: ^pcie4-x16 }", "wiring[5].link", "pcie4-x16 between gpu0 and nvswitch",
     "nvlink"},
    {"{ between: ^[plx2, cpu0], link: pcie4-x16 }", "wiring[5].between", "nothing else hangs on plx2", "network card"},
    {"{ between: [plx2, cpu0], link: pcie4-x16, count: ^64 }", "wiring[5].count",
     "1024 lanes of PCIe between plx2 and cpu0", "at most 136"},
    {"{ between: [gpu0, plx0], link: ^pcie7-x16 }", "wiring[5].link", "unknown link type", "pcie6-x16"},
    {"{ between: [gpu0, plx0], link: ^pcie4-x32 }", "wiring[5].link", "unknown link type", "pcie4-x16"},
    {"{ between: [^gpu8, plx0], link: pcie4-x16 }", "wiring[5].between[0]", "gpu8 does not exist", "gpu0 to gpu7"},
    {"{ between: [plx0, ^cpu2], link: pcie4-x16 }", "wiring[5].between[1]", "cpu2 does not exist", "cpu0 to cpu1"},
    {"{ between: [plx0, ^socket0], link: pcie4-x16 }", "wiring[5].between[1]", "unknown part", "cpu<number>"},
    {"{ between: [^gpu7..gpu6, plx0], link: pcie4-x16 }", "wiring[5].between[0]", "no range", "gpu0..gpu7"},
    {"{ between: ^[gpu6, gpu7, plx0], link: pcie4-x16 }", "wiring[5].between", "3 ends", "two ends"},
    {"{ between: ^[gpu0, gpu0], link: nvlink3 }", "wiring[5].between", "linked to itself", "two different parts"},
    {"{ between: [gpu0, gpu1], link: nvlink3, count: ^0 }", "wiring[5].count", "out of range", "from 1"},
    {"{ between: ^[gpu0..gpu7, nvswitch0..nvswitch2], link: nvlink3 }", "wiring[5].between", "ranges of 8 and 3 parts",
     "equal length"},
};

}  // namespace

TEST_CASE("Bad wiring: one link too many, told at its line") {
  for (const Row& row : rows) {
    INFO(row.link);
    check_complaint(with_links(tree + "      - " + row.link + "\n"), "cluster.node." + std::string(row.key), row.wrong,
                    row.right);
  }
}

TEST_CASE("Bad wiring: links that are missing, kinds of links and places of cards") {
  const std::string marked = "      ^" + tree.substr(6);
  check_complaint(with_links(marked, "", "17"), "cluster.node.wiring", "gpu8, gpu9", "reaches all others");
  // GPUs that only an NVSwitch joins to the others reach no processor.
  std::string on_nvswitch = marked;
  on_nvswitch.replace(on_nvswitch.find("gpu4..gpu7"), 10, "gpu4..gpu6");
  check_complaint(with_links(on_nvswitch + "      - { between: [gpu0..gpu7, nvswitch], link: nvlink3 }\n"),
                  "cluster.node.wiring", "no link leads from cpu0 to gpu7", "reaches all others");
  check_complaint(with_links(tree, "    nics: { attached_to: [^nvswitch], link: pcie4-x16 }\n"),
                  "cluster.node.nics.attached_to[0]", "nvswitch is in no link", "wiring");
  check_complaint(with_links(tree, "    nics: { attached_to: [plx0, ^gpu0], link: pcie4-x16 }\n"),
                  "cluster.node.nics.attached_to[1]", "hangs on gpu0", "plx0");
  check_complaint(with_links(tree, "    link_types: { mine: { kind: pcie, bandwidth: ^0 GB/s, latency: 1 us } }\n"),
                  "cluster.node.link_types.mine.bandwidth", "zero", "above zero");
  check_complaint(with_links(tree, "    link_types: { mine: { kind: pcie, ^bandwith: 1 GB/s, latency: 1 us } }\n"),
                  "cluster.node.link_types.mine.bandwith", "unknown key", "bandwidth");
}
