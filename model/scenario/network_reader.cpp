#include "model/scenario/network_reader.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/hardware/check.hpp"
#include "model/scenario/hardware_reader.hpp"

namespace foretrain {

namespace {

constexpr int most = 1'000'000;

/// A kind of network card of scenarios/hardware/cards.yaml.
struct CardType {
  BytesPerSecond bandwidth;
  bool infiniband = false;
};

CardType find_card_type(const Field& name, FigureLog& log) {
  const Field file(cached_yaml_file((data_directory() / "hardware" / "cards.yaml").string()), "");
  const Field cards = file.mapping({"kind", "description", "cards"})["cards"];
  std::vector<std::string> known;
  for (const YamlEntry& entry : cards.node().entries) {
    known.push_back(entry.key);
    if (entry.key != name.text()) continue;
    const Field written(entry.value, join_path(cards.path(), entry.key));
    const MappingReader card = written.mapping({"medium", "bandwidth", "source"});
    log.add(card["bandwidth"], read_source(card["source"]));
    return {card["bandwidth"].quantity<BytesPerSecond>(), card["medium"].flag("ethernet", "infiniband")};
  }
  const std::optional<std::string> nearest = nearest_word(name.text(), known);
  name.fail(fmt::format("unknown card \"{}\"", name.text()),
            nearest ? fmt::format("did you mean {}?", *nearest) : fmt::format("one of {}", or_list(known, 40)));
}

/// A figure with a fallback, noted when it is stated.
template <typename Q>
Q figure_or(const MappingReader& mapping, std::string_view key, Q fallback, FigureLog& log, Zero zero = Zero::refused) {
  return mapping.has(key) ? figure<Q>(mapping, key, log, zero) : fallback;
}

double at_least_one(const MappingReader& mapping, std::string_view key, double fallback, FigureLog& log) {
  if (const auto value = mapping.find(key)) log.add(*value);
  const double value = mapping.number_or(key, fallback);
  if (value < 1.0) mapping.fail(key, "below 1", "1 for a full fabric, 2 where half of it is missing");
  return value;
}

int required(const MappingReader& mapping, std::string_view key) {
  return static_cast<int>(mapping[key].integer({1, most}));
}

FatTree read_fat_tree(const Field& field, FigureLog& log) {
  const MappingReader tree =
      field.mapping({"kind", "name", "description", "sources", "switch_latency", "nodes_per_leaf", "nodes_per_pod",
                     "oversubscription", "pod_oversubscription", "rails"});
  FatTree result;
  result.nodes_per_leaf = required(tree, "nodes_per_leaf");
  result.nodes_per_pod = tree.int_or("nodes_per_pod", 0, {1, most});
  result.oversubscription = at_least_one(tree, "oversubscription", 1.0, log);
  result.pod_oversubscription = at_least_one(tree, "pod_oversubscription", 1.0, log);
  if (tree.has("pod_oversubscription") && result.nodes_per_pod == 0) {
    tree.fail("pod_oversubscription", "there are no pods", "nodes_per_pod, or leave the key out");
  }
  result.rails = tree.flag_or("rails", false);
  return result;
}

Dragonfly read_dragonfly(const Field& field, BytesPerSecond card, FigureLog& log) {
  const MappingReader fly =
      field.mapping({"kind", "name", "description", "sources", "switch_latency", "nodes_per_router",
                     "routers_per_group", "groups", "global_links_per_router", "local_bandwidth", "global_bandwidth"});
  Dragonfly result;
  result.nodes_per_router = required(fly, "nodes_per_router");
  result.routers_per_group = required(fly, "routers_per_group");
  result.groups = required(fly, "groups");
  // As many as nodes: what Kim et al. call balanced, with half as many as routers in a group.
  result.global_links_per_router = fly.int_or("global_links_per_router", result.nodes_per_router, {1, most});
  result.local_bandwidth = figure_or(fly, "local_bandwidth", card, log);
  result.global_bandwidth = figure_or(fly, "global_bandwidth", card, log);
  return result;
}

Torus read_torus(const Field& field, BytesPerSecond card, FigureLog& log) {
  const MappingReader torus =
      field.mapping({"kind", "name", "description", "sources", "switch_latency", "dimensions", "link_bandwidth"});
  Torus result;
  for (const Field& size : torus["dimensions"].list_or_one()) {
    result.dimensions.push_back(static_cast<int>(size.integer({1, most})));
  }
  result.link_bandwidth = figure_or(torus, "link_bandwidth", card, log);
  return result;
}

Sites read_sites(const Field& field, FigureLog& log) {
  const MappingReader sites =
      field.mapping({"kind", "name", "description", "sources", "switch_latency", "sites", "distance", "bandwidth"});
  Sites result;
  result.sites = sites.int_or("sites", 2, {1, most});
  log.add(sites["distance"]);
  result.distance_metres = sites["distance"].parse([](const std::string& text) { return parse_metres(text); });
  result.bandwidth = figure<BytesPerSecond>(sites, "bandwidth", log);
  return result;
}

enum class FabricKind { single_switch, fat_tree, dragonfly, torus, sites };

FabricKind read_kind(const Field& field) {
  if (!field.is_mapping()) field.fail("no fabric", "a name, or { kind: fat_tree, … }");
  const YamlEntry* kind = field.node().find("kind");
  if (kind == nullptr) field.fail("no kind", "kind: single_switch, fat_tree, dragonfly, torus or sites");
  return Field(kind->value, join_path(field.path(), "kind")).choice<FabricKind>();
}

Fabric read_shape(const Field& field, BytesPerSecond card, FigureLog& log) {
  Fabric fabric;
  switch (read_kind(field)) {
    case FabricKind::single_switch:
      MappingReader(field, {"kind", "name", "description", "sources", "switch_latency"});  // refuses other keys
      break;
    case FabricKind::fat_tree:
      fabric.shape = read_fat_tree(field, log);
      break;
    case FabricKind::dragonfly:
      fabric.shape = read_dragonfly(field, card, log);
      break;
    case FabricKind::torus:
      fabric.shape = read_torus(field, card, log);
      break;
    case FabricKind::sites:
      fabric.shape = read_sites(field, log);
      break;
  }
  if (const YamlEntry* latency = field.node().find("switch_latency")) {
    const Field value(latency->value, join_path(field.path(), "switch_latency"));
    log.add(value);
    fabric.switch_latency = value.quantity<Seconds>(Zero::allowed);
  }
  return fabric;
}

/// "50 %" → 0.5; nothing for another unit.
std::optional<double> percentage(const Field& field) {
  const NumberAndUnit parts = field.parse([](const std::string& text) { return split_number_and_unit(text); });
  if (parts.unit != "%") return std::nullopt;
  if (!(parts.number > 0.0 && parts.number <= 100.0)) {
    field.fail(fmt::format("{} %", parts.number), "more than 0 %, up to 100 %; or failed: true");
  }
  return parts.number / 100.0;
}

Fault read_fault(const Field& field) {
  const MappingReader fault = field.mapping({"node", "card", "link", "failed", "bandwidth"});
  Fault result;
  if (fault.has("node")) result.node = fault.int_or("node", 0, {0, most});
  if (fault.has("card") == fault.has("link")) {
    field.fail(fault.has("card") ? "a card and a link" : "neither a card nor a link", "one of the two");
  }
  if (fault.has("card")) {
    if (result.node < 0) fault.fail("card", "the card of no node", "node: NUMBER beside it");
    result.card = fault.int_or("card", 0, {0, most});
  } else {
    result.link = fault["link"].text();
  }
  result.failed = fault.flag_or("failed", false);
  if (result.failed == fault.has("bandwidth")) {
    field.fail(result.failed ? "failed, and a bandwidth" : "nothing is wrong with it",
               "failed: true, or the bandwidth that is left: 10 Gbit/s, or 50 %");
  }
  if (const auto bandwidth = fault.find("bandwidth")) {
    if (const auto share = percentage(*bandwidth)) {
      result.share = *share;
    } else {
      result.bandwidth = bandwidth->quantity<BytesPerSecond>();
    }
  }
  return result;
}

/// Where a dotted path with indices was written, or the innermost part of it that was.
SourcePosition position_of_path(const Field& field, const std::string& path) {
  const YamlNode* at = &field.node();
  for (const std::string& part : split(path, '.')) {
    const std::size_t bracket = part.find('[');
    const YamlEntry* entry = at->find(part.substr(0, bracket));
    if (entry == nullptr) break;
    at = &entry->value;
    if (bracket == std::string::npos) continue;
    const auto item = static_cast<std::size_t>(std::stoul(part.substr(bracket + 1)));
    if (item < at->items.size()) at = &at->items[item];
  }
  return at->where;
}

}  // namespace

Transport read_transport(const Field& field, FigureLog& log) {
  const MappingReader transport =
      field.mapping({"protocol", "mtu", "link_layer", "message", "window", "loss", "streams"});
  Transport result;
  result.protocol = transport["protocol"].choice<Protocol>();
  const bool infiniband = result.protocol == Protocol::infiniband;
  const bool rdma = infiniband || result.protocol == Protocol::roce;
  result.mtu = figure_or(transport, "mtu", Bytes(rdma ? 4096.0 : 1500.0), log);
  result.link_layer = transport.choice_or("link_layer", infiniband ? LinkLayer::infiniband : LinkLayer::ethernet);
  result.message = figure_or(transport, "message", result.message, log);
  result.window = figure_or(transport, "window", result.window, log);
  if (const auto loss = transport.find("loss")) log.add(*loss);
  result.loss = transport.number_or("loss", 0.0);
  result.streams = transport.int_or("streams", 1, {1, most});
  if (const auto problem = check_transport(result)) transport.fail(problem->key, problem->text, problem->expected);
  return result;
}

Fabric read_fabric(const Field& written, BytesPerSecond card, FigureLog& log) {
  const YamlNode document = resolve_preset(written, CatalogueSection::fabric);
  const Field field(document, written.path());
  if (document.find("sources") == nullptr) return read_shape(field, card, log);
  FigureLog own("fabric", field);  // a file with sources of its own
  Fabric fabric = read_shape(field, card, own);
  log.append(std::move(own).take());
  return fabric;
}

Network read_network(const Field& field, const Network& base, FigureLog& log) {
  const MappingReader network =
      field.mapping({"nics_per_node", "nic", "nic_bandwidth", "latency", "oversubscription", "efficiency", "gpu_direct",
                     "in_network_reduction", "transport", "fabric"});
  Network result = base;
  for (const std::string_view key : {"nics_per_node", "nic_bandwidth", "latency", "oversubscription", "efficiency"}) {
    if (const auto value = network.find(key)) log.add(*value);
  }
  result.nics_per_node = network.int_or("nics_per_node", base.nics_per_node, {0, 1024});
  bool infiniband_card = true;
  if (const auto nic = network.find("nic")) {
    if (network.has("nic_bandwidth")) {
      network.fail("nic_bandwidth", "the card named by nic has a bandwidth already", "one of the two");
    }
    const CardType card = find_card_type(*nic, log);
    result.nic_bandwidth = card.bandwidth;
    infiniband_card = card.infiniband;
  }
  result.nic_bandwidth = network.quantity_or("nic_bandwidth", result.nic_bandwidth);
  result.latency = network.quantity_or("latency", base.latency, Zero::allowed);
  result.oversubscription = network.number_or("oversubscription", base.oversubscription);
  if (result.oversubscription < 1.0) {
    network.fail("oversubscription", "below 1", "1 for a full fabric, 2 where half of it is missing");
  }
  if (const auto transport = network.find("transport")) {
    result.transport = read_transport(*transport, log);
    result.efficiency = payload_share(*result.transport);
    if (result.transport->protocol == Protocol::infiniband && !infiniband_card) {
      transport->fail("InfiniBand's protocol on an Ethernet card", "protocol: roce, tcp or udp; or an InfiniBand card");
    }
  }
  result.efficiency = network.number_or("efficiency", result.efficiency, Zero::refused);
  if (result.efficiency > 1.0)
    network.fail("efficiency", "above 1", "the share of the line rate that is reached, up to 1");
  result.gpu_direct = network.flag_or("gpu_direct", base.gpu_direct);
  result.in_network_reduction = network.flag_or("in_network_reduction", base.in_network_reduction);
  if (result.nics_per_node > 0 && !(result.nic_bandwidth.value() > 0.0)) {
    network.fail("nic_bandwidth", "network cards without a bandwidth", "nic_bandwidth, for example 200 Gbit/s");
  }
  if (const auto fabric = network.find("fabric")) result.fabric = read_fabric(*fabric, result.nic_bandwidth, log);
  return result;
}

std::vector<Fault> read_faults(const Field& field) {
  std::vector<Fault> faults;
  for (const Field& fault : field.list()) faults.push_back(read_fault(fault));
  return faults;
}

void require_possible_network(const Cluster& cluster, const Field& field) {
  const auto problem = check_network(cluster);
  if (!problem) return;
  throw ScenarioError(position_of_path(field, problem->key), join_path(field.path(), problem->key), problem->text,
                      problem->expected);
}

}  // namespace foretrain
