#include "validate/fit/describe.hpp"

#include <algorithm>

#include "model/base/number.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "tests/catch.hpp"
#include "tests/fit/synthetic.hpp"
#include "validate/fit/architectures.hpp"

using namespace foretrain;

namespace {

Gpu catalogue_gpu(const CatalogueEntry& entry) { return read_gpu(Field(cached_yaml_file(entry.file.string()), "")); }

/// What a driver would tell of a GPU of the catalogue.
MeasuredGpu as_told(const Gpu& gpu, const std::string& name) {
  MeasuredGpu told;
  told.name = name;
  told.compute_capability = gpu.compute_capability;
  told.sms = gpu.sms;
  told.clock = gpu.boost_clock;
  told.memory = gpu.memory;
  told.l2_cache = gpu.l2_cache;
  told.memory_clock = Hertz(gpu.memory_bandwidth.value() * 8.0 / 2.0 / 1024.0);
  told.bus_bits = 1024;
  told.power_limit_watts = gpu.board_power_watts;
  return told;
}

Gpu described(const MeasuredGpu& told, const MeasuredFigures& figures = {}) {
  const YamlNode document = parse_yaml(gpu_document(told, figures), "described");
  return read_gpu(Field(document, ""));
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
    const Gpu made = described(as_told(known, (geforce ? "NVIDIA GeForce " : "NVIDIA ") + entry.name));
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

TEST_CASE("A GPU of the catalogue is known by what its driver tells of it") {
  const auto told = [](const char* entry_name, const char* driver_name) {
    for (const CatalogueEntry& entry : list_hardware()) {
      if (entry.name == entry_name) return known_gpu(as_told(catalogue_gpu(entry), driver_name));
    }
    return std::optional<std::string>("no such entry");
  };
  CHECK(told("h100-sxm-80gb", "NVIDIA H100 80GB HBM3") == "h100-sxm-80gb");
  CHECK(told("h200-sxm-141gb", "NVIDIA H200") == "h200-sxm-141gb");
  CHECK(told("v100-sxm2-32gb", "Tesla V100-SXM2-32GB") == "v100-sxm2-32gb");
  CHECK(told("v100-pcie-32gb", "Tesla V100-PCIE-32GB") == "v100-pcie-32gb");
  CHECK(told("a100-pcie-80gb", "NVIDIA A100 80GB PCIe") == "a100-pcie-80gb");
  CHECK(told("a100-sxm-80gb", "NVIDIA A100-SXM4-80GB") == "a100-sxm-80gb");
  CHECK(told("rtx-4090", "NVIDIA GeForce RTX 4090") == "rtx-4090");
  // One multiprocessor more is another GPU.
  MeasuredGpu other = read_machine_text(synthetic::machine_json(), "m").gpus.front();
  CHECK_FALSE(known_gpu(other));
  CHECK(gpu_name(other) == "synthetic-5000");
}

TEST_CASE("An unknown GPU becomes a node that scenarios accept, each figure with its source") {
  Machine machine = read_machine_text(synthetic::machine_json(2), "machine.json");
  MeasuredFigures figures;
  figures.memory_latency = Seconds(300e-9);
  figures.host_bandwidth = BytesPerSecond(24e9);
  const YamlNode document = parse_yaml(node_document(machine, figures), "node.json");
  const Node node = read_node(Field(document, ""));
  CHECK(node.gpus == 2);
  CHECK(node.peer_to_peer == true);  // as measured: drawn past a processor, these GPUs would have none by default
  CHECK(node.gpu.name == "synthetic-5000");
  CHECK(node.gpu.memory_latency.value() == Approx(300e-9));
  // 100 multiprocessors x 2 GHz x 1024 operations of an Ada tensor core (not sold as GeForce).
  CHECK(node.gpu.matrix_rate(Precision::bf16).value() == Approx(204.8e12));
  REQUIRE_FALSE(node.link_types.empty());
  CHECK(node.link_types.front().bandwidth.value() == Approx(24e9));
  for (const Constant& constant : node.gpu.constants) CHECK_FALSE(constant.source.empty());
  // The same for people: YAML that reads back as the same node.
  const YamlNode readable = parse_yaml(readable_yaml(node_document(machine, figures)), "node.yaml");
  CHECK(read_node(Field(readable, "")).gpu.matrix_rate(Precision::bf16) == node.gpu.matrix_rate(Precision::bf16));
}

TEST_CASE("GPUs on switches and GPUs linked straight are wired as such") {
  Machine machine = read_machine_text(synthetic::machine_json(4), "machine.json");
  for (MeasuredGpu& gpu : machine.gpus) gpu.nvlinks = 12;
  for (MeasuredLink& link : machine.links) link.nvlinks = 12;
  CHECK(machine.has_nvswitch());  // all twelve links of each lead to every other: through switches
  const auto vertices = [&] {
    const YamlNode document = parse_yaml(node_document(machine, {}), "node.json");
    return read_node(Field(document, "")).vertices;
  };
  const auto is_switch = [](const NodeVertex& vertex) { return vertex.kind == VertexKind::nvswitch; };
  const auto switched = vertices();
  CHECK(std::any_of(switched.begin(), switched.end(), is_switch));
  for (MeasuredLink& link : machine.links) link.nvlinks = 4;  // three neighbours, four links to each
  CHECK_FALSE(machine.has_nvswitch());
  const auto straight = vertices();
  CHECK(std::none_of(straight.begin(), straight.end(), is_switch));
}

TEST_CASE("An NVLink is a part of what large copies reach; through switches rings have a share of it") {
  Machine machine = read_machine_text(synthetic::machine_json(4), "machine.json");
  for (MeasuredGpu& gpu : machine.gpus) gpu.nvlinks = 12;
  for (MeasuredLink& link : machine.links) link.nvlinks = 12;
  MeasuredFigures figures;
  figures.peer_bandwidth = BytesPerSecond(300e9);
  figures.peer_latency = Seconds(2e-6);
  figures.ring_bandwidth = BytesPerSecond(150e9);
  const auto nvlink = [&] {
    const Node node = read_node(Field(parse_yaml(node_document(machine, figures), "node.json"), ""));
    const auto found = std::ranges::find(node.link_types, LinkKind::nvlink, &LinkType::kind);
    REQUIRE(found != node.link_types.end());
    return *found;
  };
  const LinkType switched = nvlink();  // twelve links, and into the switch and out of it
  CHECK(switched.bandwidth.value() == Approx(25e9));
  CHECK(switched.latency.value() == Approx(1e-6));
  CHECK(switched.collective_efficiency == Approx(0.5));
  for (MeasuredLink& link : machine.links) link.nvlinks = 4;
  const LinkType straight = nvlink();  // a ring uses several neighbours' links: their share is the catalogue's
  CHECK(straight.bandwidth.value() == Approx(75e9));
  CHECK(straight.latency.value() == Approx(2e-6));
  CHECK(straight.collective_efficiency == Approx(0.83));
}

TEST_CASE("A compute capability between two of the table is priced as the older one") {
  CHECK(architecture_of(8.7).compute_capability == Approx(8.6));
  CHECK(architecture_of(9.0).name == "hopper");
  CHECK(architecture_of(13.0).compute_capability == Approx(12.0));
}

TEST_CASE("A description says what its rates were worked out from") {
  MeasuredGpu told;
  told.name = "NVIDIA X100";
  told.compute_capability = 8.0;
  told.sms = 108;
  told.clock = Hertz(1410e6);
  CHECK_THAT(gpu_document(told, {}), Catch::Contains("108 multiprocessors at 1410 MHz"));
}

TEST_CASE("Cards that nobody tells of are the fewest of a common rate that carry what rings reached") {
  const Machine machine = read_machine_text(synthetic::machine_json(), "machine.json");
  const auto network = [&](double gigabits) {
    MeasuredFigures figures;
    figures.network_bandwidth = BytesPerSecond(gigabits * 1e9 / 8.0);
    const YamlNode document = parse_yaml(node_document(machine, figures), "described");
    return read_node(Field(document, "")).network;
  };
  const auto check = [&](double gigabits, int cards, double rate) {
    INFO(gigabits);
    CHECK(network(gigabits).nics_per_node == cards);
    CHECK(network(gigabits).nic_bandwidth.value() == Approx(rate * 1e9 / 8.0));
  };
  check(0.9, 1, 1.0);
  check(9.3, 1, 10.0);
  check(180.0, 1, 200.0);
  check(770.0, 1, 800.0);
  check(800.0, 1, 800.0);
  check(1500.0, 2, 800.0);
  check(1700.0, 4, 800.0);
  check(3150.0, 4, 800.0);
  check(1604.0, 4, 800.0);
}

TEST_CASE("Every GPU of a machine with NVSwitches hangs on them; two GPUs have none") {
  Machine machine = read_machine_text(synthetic::machine_json(4), "machine.json");
  for (MeasuredGpu& gpu : machine.gpus) gpu.nvlinks = 12;
  for (MeasuredLink& link : machine.links) link.nvlinks = 12;
  const Node node = read_node(Field(parse_yaml(node_document(machine, {}), "node.json"), ""));
  const auto ends = std::ranges::count_if(node.links, [&](const NodeLink& link) {
    return node.vertices[at_index(link.a)].kind == VertexKind::nvswitch ||
           node.vertices[at_index(link.b)].kind == VertexKind::nvswitch;
  });
  CHECK(ends == 4);
  machine.gpus.resize(2);
  std::erase_if(machine.links, [](const MeasuredLink& link) { return link.from > 1 || link.to > 1; });
  CHECK_FALSE(machine.has_nvswitch());
}
