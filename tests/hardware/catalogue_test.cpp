// The shipped hardware: figures agree with each other and with how the parts are built.
#include "model/base/text.hpp"
#include "model/hardware/topology.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "tests/catch.hpp"
#include "tests/hardware/nodes.hpp"

using namespace foretrain;

namespace {

std::vector<CatalogueEntry> entries(const std::string& kind) {
  std::vector<CatalogueEntry> found;
  for (const CatalogueEntry& entry : list_hardware()) {
    if (entry.kind == kind) found.push_back(entry);
  }
  return found;
}

std::map<std::string, Gpu> gpus() {
  std::map<std::string, Gpu> result;
  for (const CatalogueEntry& entry : entries("gpu")) {
    result[entry.name] = read_gpu(Field(cached_yaml_file(entry.file.string()), ""));
  }
  return result;
}

std::map<std::string, Node> nodes() {
  std::map<std::string, Node> result;
  for (const CatalogueEntry& entry : entries("node")) {
    result[entry.name] = read_node(Field(cached_yaml_file(entry.file.string()), ""));
  }
  return result;
}

/// fp32 units of one multiprocessor, by compute capability (CUDA C++ programming guide).
int fp32_units(double compute_capability) {
  if (compute_capability < 5.0) return 192;
  return compute_capability < 8.05 ? 64 : 128;
}

double rate(const Gpu& gpu, Precision p) { return gpu.tensor_rate[static_cast<std::size_t>(p)].value(); }

}  // namespace

TEST_CASE("Every GPU and node is called as its file") {
  for (const auto& [name, gpu] : gpus()) CHECK(gpu.name == name);
  for (const auto& [name, node] : nodes()) CHECK(node.name == name);
}

TEST_CASE("Peak fp32 is units × 2 operations × boost clock") {
  for (const auto& [name, gpu] : gpus()) {
    if (gpu.architecture == "host") continue;  // a process in a GPU's place
    INFO(name);
    const double expected = gpu.sms * fp32_units(gpu.compute_capability) * 2.0 * gpu.boost_clock.value();
    CHECK(gpu.matrix_rate(Precision::fp32).value() == Approx(expected).epsilon(0.03));
  }
}

TEST_CASE("Memory bandwidth is bus width × data rate") {
  // Bits and Gbit/s per pin, from the datasheets and whitepapers.
  struct Bus {
    const char* gpu;
    int bits;
    double gigabits;
  };
  const Bus buses[] = {{"k80", 384, 5.0},
                       {"p100-sxm2", 4096, 1.43},
                       {"v100-sxm2-16gb", 4096, 1.754},
                       {"t4", 256, 10.0},
                       {"a10", 384, 12.5},
                       {"l4", 192, 12.5},
                       {"l40s", 384, 18.0},
                       {"rtx-3090", 384, 19.5},
                       {"rtx-4090", 384, 21.0},
                       {"a100-sxm-40gb", 5120, 2.43},
                       {"a100-sxm-80gb", 5120, 3.186},
                       {"a100-pcie-80gb", 5120, 3.024},
                       {"h100-sxm-80gb", 5120, 5.24},
                       {"h100-pcie-80gb", 5120, 3.186},
                       {"rtx-5090", 512, 28.0},
                       {"rtx-2080-ti", 352, 14.0},
                       {"titan-rtx", 384, 14.0},
                       {"rtx-3080", 320, 19.0},
                       {"rtx-4080", 256, 22.4},
                       {"a6000", 384, 16.0},
                       {"a40", 384, 14.5},
                       {"a10g", 384, 12.5},
                       {"rtx-6000-ada", 384, 20.0},
                       {"h100-nvl-94gb", 6016, 5.24},
                       {"rtx-pro-6000", 512, 28.0},
                       {"mi300x-192gb", 8192, 5.2},
                       {"mi325x-256gb", 8192, 5.86},
                       {"mi250x-gcd-64gb", 4096, 3.2},
                       {"mi350x-288gb", 8192, 7.8},
                       {"mi355x-288gb", 8192, 7.8},
                       {"h200-sxm-141gb", 6144, 6.25}};
  const auto all = gpus();
  for (const auto& [name, bits, gigabits] : buses) {
    INFO(name);
    CHECK(all.at(name).memory_bandwidth.value() == Approx(bits / 8.0 * gigabits * 1e9).epsilon(0.01));
  }
}

TEST_CASE("Tensor rates are dense and keep their ratios: tf32 half of bf16, bf16 as fp16") {
  for (const auto& [name, gpu] : gpus()) {
    INFO(name);
    if (gpu.has_tensor_cores(Precision::bf16)) {
      CHECK(rate(gpu, Precision::bf16) == rate(gpu, Precision::fp16));
      CHECK(rate(gpu, Precision::tf32) == Approx(rate(gpu, Precision::bf16) / 2).epsilon(0.01));
    }
    if (gpu.has_tensor_cores(Precision::fp8)) {
      CHECK(rate(gpu, Precision::fp8) == Approx(rate(gpu, Precision::fp16) * 2).epsilon(0.01));
    }
    CHECK(gpu.has_tensor_cores(Precision::fp16) == (gpu.compute_capability >= 7.0));
  }
}

TEST_CASE("Only Blackwell has units for block-scaled formats: fp8's rate, and two or three times that in 4 bits") {
  for (const auto& [name, gpu] : gpus()) {
    INFO(name);
    CHECK(gpu.has_tensor_cores(Precision::mxfp8) == (gpu.architecture == "blackwell"));
    CHECK(gpu.has_tensor_cores(Precision::nvfp4) == (gpu.architecture == "blackwell"));
    if (!gpu.has_tensor_cores(Precision::mxfp8)) continue;
    CHECK(rate(gpu, Precision::mxfp8) == rate(gpu, Precision::fp8));
    // Consumer cards hold fp8 with fp32 accumulation, but not nvfp4, to half its rate; Blackwell Ultra adds a half.
    const double ratio = rate(gpu, Precision::nvfp4) / rate(gpu, Precision::fp8);
    CHECK(ratio == Approx(gpu.compute_capability == 10.3 ? 3.0 : name == "rtx-5090" ? 4.0 : 2.0).epsilon(0.001));
  }
}

TEST_CASE("Consumer cards run fp16 products with fp32 accumulation at half the rate of their professional kin") {
  const auto all = gpus();
  const auto per_sm_and_cycle = [&](const char* name) {
    const Gpu& gpu = all.at(name);
    return rate(gpu, Precision::fp16) / gpu.sms / gpu.boost_clock.value();
  };
  CHECK(per_sm_and_cycle("rtx-3090") == Approx(per_sm_and_cycle("a10") / 2).epsilon(0.01));
  CHECK(per_sm_and_cycle("rtx-4090") == Approx(per_sm_and_cycle("l4") / 2).epsilon(0.01));
}

TEST_CASE("No machine gives a GPU more than its connectors have, nor a NIC more than its slot") {
  const YamlNode& links = cached_yaml_file((data_directory() / "hardware" / "links.yaml").string());
  // Bandwidth of one link of the catalogue, as links.yaml states it: a slot of fewer lanes or of an older PCIe less.
  const auto carries = [&](const std::string& type) {
    const YamlNode* bandwidth = links.at("links." + type + ".bandwidth");
    return bandwidth == nullptr ? 0.0 : Field(*bandwidth, type).as<BytesPerSecond>().value();
  };
  for (const auto& [name, node] : nodes()) {
    const Gpu& gpu = node.gpu;
    const bool textbook = node.nccl && *node.nccl == no_nccl;  // figures of a text, not of a datasheet
    if (gpu.architecture == "host" || textbook) continue;
    INFO(name);
    REQUIRE(carries(gpu.slot) > 0.0);
    for (int i = 0; i < node.gpus; ++i) {
      int nvlinks = 0, peers = 0;
      for (const NodeLink& link : node.links) {
        if (link.a != i && link.b != i) continue;
        const LinkType& type = node.link_types[static_cast<std::size_t>(link.type)];
        const VertexKind other = node.vertices[static_cast<std::size_t>(link.a == i ? link.b : link.a)].kind;
        if (other == VertexKind::cpu || other == VertexKind::pcie_switch) {
          CHECK(type.bandwidth.value() * link.count <= carries(gpu.slot));
          continue;
        }
        CHECK(type.name == gpu.nvlink);
        CHECK((other == VertexKind::gpu || !gpu.bridged));  // bridges lead to no NVSwitch
        nvlinks += link.count;
        ++peers;
      }
      CHECK(nvlinks <= gpu.nvlinks);
      CHECK((!gpu.bridged || peers <= 1));
    }
    // A card's payload goes through its slot; a slot carries less than its line rate, a card's headers take their part.
    const Network& network = node.network;
    if (network.nics_per_node == 0) continue;
    CHECK(network.nic_bandwidth.value() * network.efficiency <= node.nic_attachment_link.bandwidth.value());
  }
}

TEST_CASE("GPUs without peer access, by their driver or their cloud, have it in no machine of several") {
  for (const auto& [name, node] : nodes()) {
    const bool geforce = node.gpu.name.starts_with("rtx-2080") || node.gpu.name.starts_with("rtx-3") ||
                         node.gpu.name.starts_with("rtx-4") || node.gpu.name.starts_with("rtx-5") ||
                         node.gpu.name == "titan-rtx";
    INFO(name);
    if (geforce && node.gpus > 1) CHECK_FALSE(node.peer_to_peer.value_or(node.gpu.peer_access));
  }
}

TEST_CASE("Every figure names its source") {
  for (const auto& [name, node] : nodes()) {
    INFO(name);
    CHECK(node.constants.size() > 20);
    for (const Constant& constant : node.constants) {
      INFO(constant.name);
      CHECK(constant.source.size() > 5);
      CHECK(constant.source.find("stated in") == std::string::npos);  // the reader's words for a missing source
    }
  }
}

TEST_CASE("Every node has routes between all its GPUs and sockets") {
  for (const auto& [name, node] : nodes()) {
    INFO(name);
    const Topology topology(test_nodes::cluster_of(node, node.network.nics_per_node > 0 ? 2 : 1));
    for (int from = 0; from < topology.endpoints(); ++from) {
      for (int to = 0; to < topology.endpoints(); ++to) {
        const Route route = topology.route(from, to);
        CHECK(route.bandwidth.value() > 0.0);
        CHECK((from == to) == route.links.empty());
      }
    }
  }
}

TEST_CASE("Peak fp32 of the CPUs is cores × clock × 32 (two 256 bit units) or 64 (two of 512 bit) operations") {
  for (const auto& [name, node] : nodes()) {
    INFO(name);
    const double operations = node.cpu.fp32_rate.value() / node.cpu.cores / node.cpu.clock.value();
    const double expected = operations < 48.0 ? 32.0 : 64.0;
    CHECK(operations == Approx(expected).epsilon(0.01));
  }
}

TEST_CASE("Each GPU has the number of NVLinks that its generation has") {
  const std::pair<int, const char*> nodes_by_links[] = {
      {4, "dgx1-p100"},
      {7, "mi300x-x8 mi325x-x8 mi350x-x8 mi355x-x8"},  // each with all others
      {6, "dgx1-v100-16gb dgx1-v100-32gb p3.16xlarge"},
      {8, "hgx-h800"},
      {12, "dgx-a100-40gb dgx-a100-80gb p4d.24xlarge nd96asr-a100-v4"},
      {18,
       "dgx-h100 hgx-h200 dgx-b200 gh200-x4 gb200-nvl72 hgx-b300 gb300-nvl72 hgx-h20 p5en.48xlarge p6-b200.48xlarge "
       "nd96isr-h100-v5 a3-megagpu-8g a4-highgpu-8g alps"}};
  const auto all = nodes();
  for (const auto& [expected, names] : nodes_by_links) {
    for (const std::string& name : split_words(names)) {
      const Node& node = all.at(name);
      for (int gpu = 0; gpu < node.gpus; ++gpu) {
        INFO(name << " gpu" << gpu);
        int count = 0;
        for (const NodeLink& link : node.links) {
          const LinkType& type = node.link_types[static_cast<std::size_t>(link.type)];
          const bool nvlink = (type.name.starts_with("nvlink") && type.name != "nvlink-c2c") ||
                              type.name.starts_with("infinity-fabric-4");
          count += nvlink && (link.a == gpu || link.b == gpu) ? link.count : 0;
        }
        CHECK(count == expected);
      }
    }
  }
}

TEST_CASE("Bandwidths between neighbours agree with published measurements") {
  const auto all = nodes();
  const auto gigabytes = [&](const char* name, int from, int to) {
    return Topology(test_nodes::cluster_of(all.at(name))).route(from, to).bandwidth.value() / 1e9;
  };
  // p2pBandwidthLatencyTest on DGX-1: two NVLink2 carry 48.4 GB/s, one 24.2 GB/s; Dell on P100: one NVLink1 18.3 GB/s.
  CHECK(gigabytes("dgx1-v100-16gb", 0, 3) == Approx(48.4).epsilon(0.01));
  CHECK(gigabytes("dgx1-v100-16gb", 0, 1) == Approx(24.2).epsilon(0.01));
  CHECK(gigabytes("dgx1-p100", 0, 4) == Approx(18.3).epsilon(0.01));
  // nvbandwidth README: 276 GB/s between any two of eight A100; NCCL issue 1264: 376 to 380 GB/s on H100.
  CHECK(gigabytes("dgx-a100-80gb", 2, 7) == Approx(276).epsilon(0.01));
  CHECK(gigabytes("dgx-h100", 2, 7) == Approx(378).epsilon(0.01));
  // Host copies of the d2l workstation: pinned copies from a V100 card reach 12.4 GB/s.
  CHECK(gigabytes("v100-workstation-x2", 0, 2) == Approx(12.4).epsilon(0.01));
}

TEST_CASE("p2.16xlarge rings board by board") {
  const Topology p2(test_nodes::cluster_of(nodes().at("p2.16xlarge")));
  CHECK(p2.widest_ring({15, 1, 2, 14, 3, 0}) == std::vector<int>{0, 1, 2, 3, 14, 15});
}
