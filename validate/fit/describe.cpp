#include "validate/fit/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "model/base/text.hpp"
#include "model/scenario/figures.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

namespace {

using nlohmann::ordered_json;

constexpr double same_memory = 0.03, same_clock = 0.12;
constexpr double published_bandwidth_share =
    0.86;  // streaming.bandwidth_efficiency, to undo it where no clock is stated

/// Operations of a multiprocessor per clock: the row of the last compute capability that is not newer; the first one
/// for what is older than all.
MappingReader architecture_of(double compute_capability) {
  const Field file(hardware_table("architectures.yaml"), "");
  std::optional<MappingReader> found;
  for (const Field& field : file.mapping(keys::architectures_file)["architectures"].list()) {
    const MappingReader row = field.mapping();
    if (!found || row["compute_capability"].as<double>() <= compute_capability + 1e-9) found.emplace(row);
  }
  return *found;
}

ordered_json source(const char* kind, const std::string& text) { return {{"kind", kind}, {"text", text}}; }

/// Words of a name in lower case, cut at everything that is neither letter nor digit.
std::vector<std::string> words_of(const std::string& name) {
  std::string plain;
  for (const char c : to_lower(name)) plain += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : ' ';
  return split_words(plain);
}

int shared_words(const std::string& a, const std::string& b) {
  const std::vector<std::string> left = words_of(a), right = words_of(b);
  return static_cast<int>(std::ranges::count_if(left, [&](const std::string& word) {
    return std::ranges::any_of(right, [&](const std::string& other) { return other.starts_with(word); });
  }));
}

/// Peak rates of so many operations per clock of one multiprocessor, by the word of the precision.
ordered_json rates(const Field& per_clock, const MeasuredGpu& gpu) {
  std::map<std::string, std::string> rates;
  for (const YamlEntry& entry : per_clock.node().entries) {
    const double each = per_clock.below(entry).as<double>({.zero = Zero::refused});
    rates[entry.key] = fmt::format("{:.4g} TFLOP/s", each * gpu.sms * gpu.clock.value() * 1e-12);
  }
  return rates;
}

/// Boards sold as GeForce may have slower tensor cores.
std::optional<Field> tensor_operations(const MappingReader& architecture, const MeasuredGpu& gpu) {
  const bool geforce = gpu.name.find("GeForce") != std::string::npos && architecture.has("geforce");
  return architecture.find(geforce ? "geforce" : "tensor");
}

ordered_json gpu_object(const MeasuredGpu& gpu, const MeasuredFigures& figures) {
  const MappingReader architecture = architecture_of(gpu.compute_capability);
  const double capability = architecture["compute_capability"].as<double>();
  ordered_json sources;
  sources["default"] = source("measurement", fmt::format("reported by the driver of {}", gpu.name));
  const std::string per_clock =
      fmt::format("{} multiprocessors at {:.0f} MHz, operations per clock as compute capability {}: {}", gpu.sms,
                  gpu.clock.value() * 1e-6, capability, read_source(architecture["source"]).text);
  const bool exact = std::abs(capability - gpu.compute_capability) < 0.05;
  sources["vector_rate"] = source(exact ? "datasheet" : "assumption", per_clock);
  ordered_json object = {{"kind", "gpu"},
                         {"name", gpu_name(gpu)},
                         {"description", gpu.name + ", described by foretrain calibrate"},
                         {"architecture", architecture["architecture"].text()},
                         {"compute_capability", fmt::format("{:.1f}", gpu.compute_capability)},
                         {"sms", gpu.sms},
                         {"boost_clock", fmt::format("{:.0f} MHz", gpu.clock.value() * 1e-6)},
                         {"vector_rate", rates(architecture["vector"], gpu)}};
  if (const auto tensor = tensor_operations(architecture, gpu)) {
    object["tensor_rate"] = rates(*tensor, gpu);
    sources["tensor_rate"] = sources["vector_rate"];
  }
  object["memory"] = fmt::format("{:.0f} MiB", gpu.memory.value() / 1048576.0);
  if (const auto peak = gpu.peak_bandwidth()) {
    object["memory_bandwidth"] = fmt::format("{:.4g} GB/s", peak->value() * 1e-9);
    sources["memory_bandwidth"] =
        source("measurement", fmt::format("two transfers a clock over {} bit", *gpu.bus_bits));
  } else {
    const double read = figures.l2_bandwidth ? figures.l2_bandwidth->value() / 4.0 : 500e9;
    object["memory_bandwidth"] = fmt::format("{:.4g} GB/s", read / published_bandwidth_share * 1e-9);
    sources["memory_bandwidth"] = source("assumption", "the driver reports no memory clock: a quarter of the L2's");
  }
  const Seconds latency = figures.memory_latency.value_or(architecture["memory_latency"].as<Seconds>());
  object["memory_latency"] = fmt::format("{:.4g} ns", latency.value() * 1e9);
  sources["memory_latency"] = figures.memory_latency
                                  ? source("measurement", "pointer chase over the largest working set")
                                  : source("assumption", "as other GPUs of its compute capability");
  object["l2_cache"] = fmt::format("{:.0f} KiB", gpu.l2_cache.value() / 1024.0);
  const BytesPerSecond usual(architecture["l2_bytes"].as<double>() * gpu.sms * gpu.clock.value());
  object["l2_bandwidth"] = fmt::format("{:.4g} GB/s", figures.l2_bandwidth.value_or(usual).value() * 1e-9);
  sources["l2_bandwidth"] = figures.l2_bandwidth
                                ? source("measurement", "reads of data that stay in the L2")
                                : source("assumption", "bytes per clock and multiprocessor of its compute capability");
  object["shared_memory_per_sm"] =
      fmt::format("{:.0f} KiB", gpu.shared_memory_per_sm.value_or(Bytes(100.0 * 1024.0)).value() / 1024.0);
  object["board_power"] = fmt::format("{:.0f} W", gpu.power_limit_watts.value_or(300.0));
  if (!gpu.power_limit_watts) sources["board_power"] = source("assumption", "the driver reports none");
  if (gpu.copy_engines) object["copy_engines"] = std::clamp(*gpu.copy_engines, 1, 64);
  object["sources"] = sources;
  return object;
}

ordered_json json_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::scalar:
      return node.scalar;
    case YamlNode::Kind::sequence: {
      ordered_json list = ordered_json::array();
      for (const YamlNode& item : node.items) list.push_back(json_of(item));
      return list;
    }
    case YamlNode::Kind::mapping: {
      ordered_json object = ordered_json::object();
      for (const YamlEntry& entry : node.entries) object[entry.key] = json_of(entry.value);
      return object;
    }
    case YamlNode::Kind::null:
      break;
  }
  return nullptr;
}

ordered_json assumed_cpu(const Machine& machine) {
  return {{"name", machine.processor.empty() ? "processor" : machine.processor},
          {"sockets", 1},
          {"cores", 32},
          {"clock", "2.5 GHz"},
          {"memory", "256 GiB"},
          {"memory_bandwidth", "200 GB/s"},
          {"fp32_rate", "2.5 TFLOP/s"}};
}

/// A link type of the catalogue with measured figures put in its place.
ordered_json link_type(const std::string& catalogue, const char* kind, std::optional<BytesPerSecond> bandwidth,
                       std::optional<Seconds> latency, double collective_share) {
  const Field file(hardware_table("links.yaml"), "");
  ordered_json type = {{"kind", kind}, {"bandwidth", "12 GB/s"}, {"latency", "1.5 us"}};
  if (const YamlEntry* known = file.node().find("links")->value.find(catalogue)) type = json_of(known->value);
  if (!bandwidth && collective_share <= 0.0) return type;
  if (bandwidth) type["bandwidth"] = fmt::format("{:.4g} GB/s", bandwidth->value() * 1e-9);
  if (latency) type["latency"] = fmt::format("{:.3g} us", latency->value() * 1e6);
  if (collective_share > 0.0) type["collective_efficiency"] = fmt::format("{:.3f}", collective_share);
  type["source"] = source("measurement",
                          fmt::format("foretrain-gpu measure on this machine; what it does not tell as {}", catalogue));
  return type;
}

int nvlink_generation(double compute_capability) {
  if (compute_capability < 7.0) return 1;
  if (compute_capability < 8.0) return 2;
  if (compute_capability < 9.0) return 3;
  return compute_capability < 10.0 ? 4 : 5;
}

std::string pcie_name(const MeasuredGpu& gpu) {
  const int generation = std::clamp(gpu.pcie_generation.value_or(4), 3, 6);
  const int width = gpu.pcie_width.value_or(16);
  return fmt::format("pcie{}-x{}", generation, width >= 16 ? 16 : width >= 8 ? 8 : width >= 4 ? 4 : 1);
}

ordered_json wire(const std::string& a, const std::string& b, const std::string& type, int count = 1) {
  ordered_json link = {{"between", {a, b}}, {"link", type}};
  if (count > 1) link["count"] = count;
  return link;
}

void add_nvlinks(const Machine& machine, const MeasuredFigures& figures, ordered_json& types, ordered_json& wiring) {
  const MeasuredGpu& gpu = machine.gpus.front();
  int most = 0;
  for (const MeasuredLink& link : machine.links) most = std::max(most, link.nvlinks);
  if (most == 0) return;
  std::optional<BytesPerSecond> one;
  if (figures.peer_bandwidth) one = *figures.peer_bandwidth / static_cast<double>(most);
  double share = 0.0;
  if (figures.peer_bandwidth && figures.ring_bandwidth) {
    share = std::clamp(*figures.ring_bandwidth / *figures.peer_bandwidth, 0.05, 1.0);
  }
  const bool switched = machine.has_nvswitch();
  std::optional<Seconds> latency;  // of one crossing: through a switch there are two
  if (figures.peer_latency) latency = *figures.peer_latency / (switched ? 2.0 : 1.0);
  if (!switched) share = 0.0;  // direct links: a ring uses several of them, so that the share would not be one link's
  types["nvlink"] =
      link_type(fmt::format("nvlink{}", nvlink_generation(gpu.compute_capability)), "nvlink", one, latency, share);
  if (!switched) types["nvlink"].erase("in_network_reduction");
  if (switched) {
    wiring.push_back(wire(fmt::format("gpu0..gpu{}", machine.gpus.size() - 1), "nvswitch", "nvlink", most));
    return;
  }
  for (const MeasuredLink& link : machine.links) {
    if (link.from >= link.to || link.nvlinks == 0) continue;
    wiring.push_back(wire(fmt::format("gpu{}", link.from), fmt::format("gpu{}", link.to), "nvlink", link.nvlinks));
  }
}

/// The NICs that the operating system reports; where it reports none, as many of a common rate as carry what rings
/// over several machines reached. Nothing for a machine that was measured alone and has none.
ordered_json network_of(const Machine& machine, const MeasuredFigures& figures) {
  int cards = machine.network_cards;
  double gigabits = machine.card_rate.value() * 8e-9;
  if (cards == 0 && !figures.network_bandwidth) return nullptr;
  if (cards == 0) {
    constexpr std::array<double, 9> rates = {1, 10, 25, 40, 50, 100, 200, 400, 800};
    const double reached = figures.network_bandwidth->value() * 8e-9;
    for (cards = 1; reached / cards > rates.back();) cards *= 2;
    gigabits = *std::lower_bound(rates.begin(), rates.end() - 1, reached / cards);
  }
  return {{"nics_per_node", cards}, {"nic_bandwidth", fmt::format("{:.4g} Gbit/s", gigabits)}, {"latency", "5 us"}};
}

}  // namespace

std::string gpu_name(const MeasuredGpu& gpu) {
  std::string name;
  for (const std::string& word : words_of(gpu.name)) name += (name.empty() ? "" : "-") + word;
  return name.empty() ? "gpu" : name;
}

std::optional<std::string> known_gpu(const MeasuredGpu& gpu) {
  std::optional<std::string> best;
  std::pair<int, double> quality{-1, 0.0};
  for (const CatalogueEntry& entry : list_hardware()) {
    if (entry.kind != "gpu") continue;
    const Gpu known = read_gpu(Field(cached_yaml_file(entry.file.string()), ""));
    const double clock = std::abs(std::log(known.boost_clock / gpu.clock));
    if (std::abs(known.compute_capability - gpu.compute_capability) > 0.05 || known.sms != gpu.sms) continue;
    if (std::abs(known.memory / gpu.memory - 1.0) > same_memory || clock > same_clock) continue;
    const std::pair<int, double> here{shared_words(entry.name, gpu.name), -clock};
    if (!best || here > quality) {
      best = entry.name;
      quality = here;
    }
  }
  return best;
}

std::string gpu_document(const MeasuredGpu& gpu, const MeasuredFigures& figures) {
  return gpu_object(gpu, figures).dump();
}

std::string node_document(const Machine& machine, const MeasuredFigures& figures, const YamlNode* cpu) {
  const MeasuredGpu& gpu = machine.gpus.front();
  const auto known = known_gpu(gpu);
  ordered_json node = {
      {"kind", "node"},
      {"name", fmt::format("{}-x{}", known.value_or(gpu_name(gpu)), machine.gpus.size())},
      {"description", fmt::format("{} x {}, described by foretrain calibrate", machine.gpus.size(), gpu.name)}};
  node["gpu"] = known ? ordered_json(*known) : gpu_object(gpu, figures);
  node["gpus"] = machine.gpus.size();
  node["cpu"] = cpu != nullptr ? json_of(*cpu) : assumed_cpu(machine);
  if (!machine.links.empty()) node["peer_to_peer"] = std::ranges::all_of(machine.links, &MeasuredLink::peer_access);
  ordered_json types;
  types["pcie"] = link_type(pcie_name(gpu), "pcie", figures.host_bandwidth, figures.host_latency, 0.0);
  ordered_json wiring = ordered_json::array();
  wiring.push_back(
      wire(machine.gpus.size() == 1 ? "gpu0" : fmt::format("gpu0..gpu{}", machine.gpus.size() - 1), "cpu0", "pcie"));
  add_nvlinks(machine, figures, types, wiring);
  node["link_types"] = types;
  node["wiring"] = wiring;
  if (const ordered_json network = network_of(machine, figures); !network.is_null()) node["network"] = network;
  node["sources"] = {{"default", source("assumption", "reported by the driver; all GPUs are drawn on one socket")},
                     {"cpu", cpu != nullptr ? source("measurement", "reported by the operating system")
                                            : source("assumption", "a plain server: not in the measurements")}};
  if (node.contains("network")) {
    const bool stated = machine.network_cards > 0;
    node["sources"]["network"] =
        stated ? source("measurement", "NICs that the operating system reports; the latency is assumed")
               : source("assumption", "the common cards that carry what rings between machines reached");
  }
  return node.dump(2) + "\n";
}

}  // namespace foretrain
