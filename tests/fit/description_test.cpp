// What a description of a GPU and of a node says of what the driver tells, figure by figure.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "tests/catch.hpp"
#include "tests/fit/synthetic.hpp"
#include "validate/fit/describe.hpp"

using namespace foretrain;

namespace {

using DescriptionJson = nlohmann::json;

MeasuredGpu some_ampere() {
  MeasuredGpu told;
  told.name = "NVIDIA X100";
  told.compute_capability = 8.0;
  told.sms = 100;
  told.clock = Hertz(1.5e9);
  told.memory = Bytes(80.0 * 1073741824.0);
  told.l2_cache = Bytes(40.0 * 1048576.0);
  return told;
}

DescriptionJson gpu_json(const MeasuredGpu& gpu, const MeasuredFigures& figures = {}) {
  return DescriptionJson::parse(gpu_document(gpu, figures));
}

/// Four GPUs, `links` NVLinks from each to each.
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

TEST_CASE("Sizes are described in mebibytes and kibibytes, and what no driver tells is assumed") {
  MeasuredGpu gpu = some_ampere();
  const DescriptionJson plain = gpu_json(gpu);
  CHECK(plain["memory"] == "81920 MiB");
  CHECK(plain["l2_cache"] == "40960 KiB");
  CHECK(plain["shared_memory_per_sm"] == "100 KiB");
  CHECK(plain["board_power"] == "300 W");
  CHECK(plain["sources"]["board_power"]["kind"] == "assumption");
  CHECK_FALSE(plain.contains("copy_engines"));
  gpu.shared_memory_per_sm = Bytes(167936.0);
  gpu.power_limit_watts = 400.0;
  gpu.copy_engines = 5;
  const DescriptionJson told = gpu_json(gpu);
  CHECK(told["shared_memory_per_sm"] == "164 KiB");
  CHECK(told["board_power"] == "400 W");
  CHECK_FALSE(told["sources"].contains("board_power"));
  CHECK(told["copy_engines"] == 5);
}

TEST_CASE("Without a memory clock the bandwidth is a quarter of the L2's, of which copies reach 86 per cent") {
  MeasuredFigures figures;
  figures.l2_bandwidth = BytesPerSecond(3.44e12);
  CHECK(gpu_json(some_ampere(), figures)["memory_bandwidth"] == "1000 GB/s");  // 860 / 0.86
  CHECK(gpu_json(some_ampere())["memory_bandwidth"] == "581.4 GB/s");          // 500 / 0.86
}

TEST_CASE("Rates are a datasheet's for a compute capability of the table, assumed beside it") {
  const auto kind = [](double compute_capability) {
    MeasuredGpu gpu = some_ampere();
    gpu.compute_capability = compute_capability;
    return gpu_json(gpu)["sources"]["vector_rate"]["kind"];
  };
  CHECK(kind(8.0) == "datasheet");
  CHECK(kind(8.04) == "datasheet");
  CHECK(kind(8.07) == "assumption");
}

TEST_CASE("A GPU is known within three per cent of its memory, an eighth of its clock and half a tenth of capability") {
  MeasuredGpu exact;
  for (const CatalogueEntry& entry : list_hardware()) {
    if (entry.name != "h200-sxm-141gb") continue;
    const Gpu gpu = read_gpu(Field(cached_yaml_file(entry.file.string()), ""));
    exact.name = "NVIDIA H200";
    exact.compute_capability = gpu.compute_capability;
    exact.sms = gpu.sms;
    exact.clock = gpu.boost_clock;
    exact.memory = gpu.memory;
  }
  const auto is_known = [&](double memory, double clock, double capability) {
    MeasuredGpu told = exact;
    told.memory = told.memory * memory;
    told.clock = told.clock * clock;
    told.compute_capability += capability;
    return known_gpu(told) == "h200-sxm-141gb";
  };
  CHECK(is_known(1.0, 1.0, 0.0));
  CHECK(is_known(1.0 / 1.0295, 1.0, 0.0));  // the catalogue's is 2.95 % more
  CHECK_FALSE(is_known(1.0 / 1.0305, 1.0, 0.0));
  CHECK(is_known(1.0, std::exp(0.119), 0.0));
  CHECK(is_known(1.0, std::exp(-0.119), 0.0));
  CHECK_FALSE(is_known(1.0, std::exp(0.121), 0.0));
  CHECK(is_known(1.0, 1.0, 0.04));
  CHECK_FALSE(is_known(1.0, 1.0, 0.07));
}

TEST_CASE("NVLinks are of the generation of their GPU") {
  MeasuredFigures figures;
  figures.peer_bandwidth = BytesPerSecond(300e9);
  const auto of = [&](double capability) {
    const std::string text = node_json(linked(capability, 12), figures)["link_types"]["nvlink"]["source"]["text"];
    return text.substr(text.size() - 7);
  };
  CHECK(of(6.0) == "nvlink1");
  CHECK(of(7.5) == "nvlink2");
  CHECK(of(8.9) == "nvlink3");
  CHECK(of(9.0) == "nvlink4");
  CHECK(of(10.0) == "nvlink5");
}

TEST_CASE("Switches add up and have a wire from all GPUs, straight links from each to each") {
  const DescriptionJson switched = node_json(linked(9.0, 12));
  CHECK(switched["link_types"]["nvlink"].contains("in_network_reduction"));
  REQUIRE(switched["wiring"].size() == 2);
  CHECK(switched["wiring"][0]["between"] == DescriptionJson({"gpu0..gpu3", "cpu0"}));
  CHECK(switched["wiring"][1]["between"] == DescriptionJson({"gpu0..gpu3", "nvswitch"}));
  const DescriptionJson straight = node_json(linked(9.0, 4));
  CHECK_FALSE(straight["link_types"]["nvlink"].contains("in_network_reduction"));
  REQUIRE(straight["wiring"].size() == 7);  // the bus, and six pairs of four
  CHECK(straight["wiring"][6]["between"] == DescriptionJson({"gpu2", "gpu3"}));
  CHECK(straight["wiring"][6]["count"] == 4);
}

TEST_CASE("The share of a link that rings reach is between a twentieth and all of it") {
  const auto share = [](double ring) {
    MeasuredFigures figures;
    figures.peer_bandwidth = BytesPerSecond(100e9);
    figures.ring_bandwidth = BytesPerSecond(ring);
    return node_json(linked(9.0, 12), figures)["link_types"]["nvlink"]["collective_efficiency"];
  };
  CHECK(share(7e9) == "0.070");
  CHECK(share(4e9) == "0.050");
  CHECK(share(99e9) == "0.990");
  CHECK(share(150e9) == "1.000");
}

TEST_CASE("A description for people has what is shallow in one line, and what is deeper below its key") {
  CHECK(readable_yaml(R"({"a":{"b":{"c":1},"e":{"d":{"x":1}}},"f":[{"g":[1]},2],"h":{}})") ==
        "a:\n  b: {\"c\":1}\n  e: {\"d\":{\"x\":1}}\nf:\n  - {\"g\":[1]}\n  - 2\nh: {}\n");
  const std::string text(200, 'x');
  CHECK(readable_yaml(fmt::format(R"({{"k":"{}"}})", text)) == fmt::format("k: \"{}\"\n", text));
}
