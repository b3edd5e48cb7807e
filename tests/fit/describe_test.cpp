// Descriptions of a GPU and of a node from driver output, value by value.
#include "validate/fit/describe.hpp"

#include <nlohmann/json.hpp>

#include "model/base/number.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "tests/catch.hpp"
#include "tests/fit/synthetic.hpp"

using namespace foretrain;

namespace {

using DescriptionJson = nlohmann::json;

Gpu catalogue_gpu(const CatalogueEntry& entry) { return read_gpu(Field(cached_yaml_file(entry.file.string()), "")); }

/// A driver's report of a GPU of the catalogue.
MeasuredGpu as_told(const Gpu& gpu, const std::string& name) {
  MeasuredGpu reported;
  reported.name = name;
  reported.compute_capability = gpu.compute_capability;
  reported.sms = gpu.sms;
  reported.clock = gpu.boost_clock;
  reported.memory = gpu.memory;
  reported.l2_cache = gpu.l2_cache;
  reported.memory_clock = Hertz(gpu.memory_bandwidth.value() * 8.0 / 2.0 / 1024.0);
  reported.bus_bits = 1024;
  reported.power_limit_watts = gpu.board_power_watts;
  return reported;
}

MeasuredGpu told_of(const std::string& entry_name, const std::string& driver_name) {
  const std::vector<CatalogueEntry> all = list_hardware();
  return as_told(catalogue_gpu(*std::ranges::find(all, entry_name, &CatalogueEntry::name)), driver_name);
}

MeasuredGpu some_ampere() {
  MeasuredGpu reported;
  reported.name = "NVIDIA X100";
  reported.compute_capability = 8.0;
  reported.sms = 108;
  reported.clock = Hertz(1.41e9);
  reported.memory = Bytes(80.0 * 1073741824.0);
  reported.l2_cache = Bytes(40.0 * 1048576.0);
  return reported;
}

DescriptionJson gpu_json(const MeasuredGpu& gpu, const MeasuredFigures& figures = {}) {
  return DescriptionJson::parse(gpu_document(gpu, figures));
}

Node read_back(const std::string& document) { return read_node(Field(parse_yaml(document, "node.json"), "")); }

/// Four GPUs of twelve NVLinks, of which `links` lead from each to each.
Machine linked(double compute_capability, int links) {
  Machine machine = read_machine_text(synthetic::machine_json(4), "machine.json");
  for (MeasuredGpu& gpu : machine.gpus) {
    gpu.compute_capability = compute_capability;
    gpu.nvlinks = 12;
  }
  for (MeasuredLink& link : machine.links) link.nvlinks = links;
  return machine;
}

DescriptionJson node_json(const Machine& machine, const MeasuredFigures& figures = {}) {
  return DescriptionJson::parse(node_document(machine, figures));
}

}  // namespace

TEST_CASE("Peak rates from operations per clock are those of datasheets") {
  // Every GPU of the catalogue from Volta on, described from what its driver tells: within 4 % of its datasheet. Hopper
  // SXM tensor rates are stated at 1830 MHz and CUDA-core rates at 1980 MHz, Blackwell's at less than its boost clock:
  // 9 %. H20's tensor cores are held back by its firmware, MI300's are no multiprocessors of CUDA: not among them.
  int compared = 0;
  for (const CatalogueEntry& entry : list_hardware()) {
    if (entry.kind != "gpu") continue;
    const Gpu known = catalogue_gpu(entry);
    if (known.compute_capability < 7.0 || known.architecture == "host") continue;
    if (entry.name.starts_with("h20-") || known.architecture.starts_with("cdna")) continue;
    // A10G's tensor cores run at half rate though it is no GeForce; H100 NVL's are stated for what its power allows.
    if (entry.name == "a10g" || entry.name == "h100-nvl-94gb") continue;
    const bool geforce = entry.description.starts_with("GeForce");
    const MeasuredGpu reported = as_told(known, (geforce ? "NVIDIA GeForce " : "NVIDIA ") + entry.name);
    const Gpu made = read_gpu(Field(parse_yaml(gpu_document(reported, {}), "described"), ""));
    const double tolerance = known.compute_capability >= 9.0 ? 0.09 : 0.04;
    for (std::size_t p = 0; p < precision_count; ++p) {
      INFO(entry.name << " " << names_of<Precision>[p]);
      if (known.tensor_rate[p].value() > 0.0) {
        CHECK(made.tensor_rate[p] / known.tensor_rate[p] == Approx(1.0).epsilon(tolerance));
        ++compared;
      }
      if (p == static_cast<std::size_t>(Precision::fp32)) {
        CHECK(made.vector_rate[p] / known.vector_rate[p] == Approx(1.0).epsilon(tolerance));
      }
    }
    CHECK(made.memory_bandwidth / known.memory_bandwidth == Approx(1.0).epsilon(0.01));
  }
  CHECK(compared > 50);
}

TEST_CASE("A GPU of the catalogue is recognised by what its driver reports") {
  for (const auto& [entry, driver] : {std::pair("h100-sxm-80gb", "NVIDIA H100 80GB HBM3"),
                                      {"h200-sxm-141gb", "NVIDIA H200"},
                                      {"v100-sxm2-32gb", "Tesla V100-SXM2-32GB"},
                                      {"v100-pcie-32gb", "Tesla V100-PCIE-32GB"},
                                      {"a100-pcie-80gb", "NVIDIA A100 80GB PCIe"},
                                      {"a100-sxm-80gb", "NVIDIA A100-SXM4-80GB"},
                                      {"rtx-4090", "NVIDIA GeForce RTX 4090"}}) {
    CHECK(known_gpu(told_of(entry, driver)) == std::optional<std::string>(entry));
  }
  const MeasuredGpu other = read_machine_text(synthetic::machine_json(), "m").gpus.front();
  CHECK_FALSE(known_gpu(other));
  CHECK(gpu_name(other) == "synthetic-5000");
  // Within three per cent of its memory, an eighth of its clock and half a tenth of capability.
  const MeasuredGpu exact = told_of("h200-sxm-141gb", "NVIDIA H200");
  const auto is_known = [&](double memory, double clock, double capability) {
    MeasuredGpu reported = exact;
    reported.memory = reported.memory * memory;
    reported.clock = reported.clock * clock;
    reported.compute_capability += capability;
    return known_gpu(reported) == "h200-sxm-141gb";
  };
  CHECK(is_known(1.0 / 1.0295, 1.0, 0.0));  // the catalogue's is 2.95 % more
  CHECK_FALSE(is_known(1.0 / 1.0305, 1.0, 0.0));
  CHECK(is_known(1.0, std::exp(0.119), 0.0));
  CHECK(is_known(1.0, std::exp(-0.119), 0.0));
  CHECK_FALSE(is_known(1.0, std::exp(0.121), 0.0));
  CHECK(is_known(1.0, 1.0, 0.04));
  CHECK_FALSE(is_known(1.0, 1.0, 0.07));
}

TEST_CASE("An unknown GPU becomes a node that scenarios accept, each figure with its source") {
  const Machine machine = read_machine_text(synthetic::machine_json(2), "machine.json");
  MeasuredFigures figures;
  figures.memory_latency = Seconds(300e-9);
  figures.host_bandwidth = BytesPerSecond(24e9);
  const Node node = read_back(node_document(machine, figures));
  CHECK(node.gpus == 2);
  CHECK(node.peer_to_peer == true);  // as measured: drawn past a processor, these GPUs would have none by default
  CHECK(node.gpu.name == "synthetic-5000");
  CHECK(node.gpu.memory_latency.value() == Approx(300e-9));
  // 100 multiprocessors x 2 GHz x 1024 operations of an Ada tensor core (not sold as GeForce).
  CHECK(node.gpu.matrix_rate(Precision::bf16).value() == Approx(204.8e12));
  REQUIRE_FALSE(node.link_types.empty());
  CHECK(node.link_types.front().bandwidth.value() == Approx(24e9));
  for (const Constant& constant : node.gpu.constants) CHECK_FALSE(constant.source.empty());
}

TEST_CASE("GPUs on switches have a wire from all of them, GPUs linked straight from each to each") {
  const Machine switched = linked(9.0, 12), straight = linked(9.0, 4);
  CHECK(switched.has_nvswitch());  // all twelve links of each lead to every other: through switches
  const Node node = read_back(node_document(switched, {}));
  const auto ends = std::ranges::count_if(node.links, [&](const NodeLink& link) {
    return node.vertices[at_index(link.a)].kind == VertexKind::nvswitch ||
           node.vertices[at_index(link.b)].kind == VertexKind::nvswitch;
  });
  CHECK(ends == 4);
  const DescriptionJson wired = node_json(switched);
  CHECK(wired["link_types"]["nvlink"].contains("in_network_reduction"));
  REQUIRE(wired["wiring"].size() == 2);
  CHECK(wired["wiring"][0]["between"] == DescriptionJson({"gpu0..gpu3", "cpu0"}));
  CHECK(wired["wiring"][1]["between"] == DescriptionJson({"gpu0..gpu3", "nvswitch"}));
  CHECK_FALSE(straight.has_nvswitch());  // three neighbours, four links to each
  const DescriptionJson apart = node_json(straight);
  CHECK_FALSE(apart["link_types"]["nvlink"].contains("in_network_reduction"));
  REQUIRE(apart["wiring"].size() == 7);  // the bus, and six pairs of four
  CHECK(apart["wiring"][6]["between"] == DescriptionJson({"gpu2", "gpu3"}));
  CHECK(apart["wiring"][6]["count"] == 4);
  Machine two = switched;
  two.gpus.resize(2);
  std::erase_if(two.links, [](const MeasuredLink& link) { return link.from > 1 || link.to > 1; });
  CHECK_FALSE(two.has_nvswitch());
}

TEST_CASE("An NVLink is a part of what large copies reach; through switches rings have a share of it") {
  MeasuredFigures figures;
  figures.peer_bandwidth = BytesPerSecond(300e9);
  figures.peer_latency = Seconds(2e-6);
  figures.ring_bandwidth = BytesPerSecond(150e9);
  const auto nvlink = [&](int links) {
    const Node node = read_back(node_document(linked(8.9, links), figures));
    return *std::ranges::find(node.link_types, LinkKind::nvlink, &LinkType::kind);
  };
  const LinkType switched = nvlink(12);  // twelve links, and into the switch and out of it
  CHECK(switched.bandwidth.value() == Approx(25e9));
  CHECK(switched.latency.value() == Approx(1e-6));
  CHECK(switched.collective_efficiency == Approx(0.5));
  const LinkType straight = nvlink(4);  // a ring uses several neighbours' links: their share is the catalogue's
  CHECK(straight.bandwidth.value() == Approx(75e9));
  CHECK(straight.latency.value() == Approx(2e-6));
  CHECK(straight.collective_efficiency == Approx(0.83));
  const auto share = [&](double ring) {
    figures.ring_bandwidth = BytesPerSecond(ring);
    return node_json(linked(9.0, 12), figures)["link_types"]["nvlink"]["collective_efficiency"];
  };
  CHECK(share(21e9) == "0.070");
  CHECK(share(12e9) == "0.050");  // a twentieth at least
  CHECK(share(450e9) == "1.000");
  for (const auto& [capability, generation] : {std::pair(6.0, 1), {7.5, 2}, {8.9, 3}, {9.0, 4}, {10.0, 5}}) {
    const std::string text = node_json(linked(capability, 12), figures)["link_types"]["nvlink"]["source"]["text"];
    CHECK_THAT(text, Catch::EndsWith(fmt::format("nvlink{}", generation)));
  }
}

TEST_CASE("A compute capability between two of the table is priced as the older one") {
  const auto described = [](double capability) {
    MeasuredGpu gpu = some_ampere();
    gpu.compute_capability = capability;
    return gpu_json(gpu);
  };
  const auto as = [&](double capability) {
    return described(capability)["sources"]["vector_rate"]["text"].get<std::string>();
  };
  CHECK_THAT(as(8.7), Catch::Contains("as compute capability 8.6"));
  CHECK_THAT(as(13.0), Catch::Contains("as compute capability 12"));
  CHECK(described(9.0)["architecture"] == "hopper");
}

TEST_CASE("Rates are a datasheet's for a compute capability of the table, assumed beside it") {
  const auto kind = [](double compute_capability) {
    MeasuredGpu gpu = some_ampere();
    gpu.compute_capability = compute_capability;
    return gpu_json(gpu)["sources"]["vector_rate"]["kind"];
  };
  CHECK_THAT(gpu_document(some_ampere(), {}), Catch::Contains("108 multiprocessors at 1410 MHz"));
  CHECK(kind(8.0) == "datasheet");
  CHECK(kind(8.04) == "datasheet");
  CHECK(kind(8.07) == "assumption");
}

TEST_CASE("NICs that nobody reports are the fewest of a common rate that carry what rings reached") {
  const Machine machine = read_machine_text(synthetic::machine_json(), "machine.json");
  struct Row {
    double reached;
    int cards;
    double rate;
  };
  for (const auto& [reached, cards, rate] :
       {Row{0.9, 1, 1.0}, Row{9.3, 1, 10.0}, Row{180.0, 1, 200.0}, Row{770.0, 1, 800.0}, Row{800.0, 1, 800.0},
        Row{1500.0, 2, 800.0}, Row{1604.0, 4, 800.0}, Row{3150.0, 4, 800.0}}) {
    INFO(reached);
    MeasuredFigures figures;
    figures.network_bandwidth = BytesPerSecond(reached * 1e9 / 8.0);
    const auto network = read_back(node_document(machine, figures)).network;
    CHECK(network.nics_per_node == cards);
    CHECK(network.nic_bandwidth.value() == Approx(rate * 1e9 / 8.0));
  }
}
