#include "model/scenario/hardware/hardware_reader.hpp"

#include <variant>

#include "model/base/text.hpp"
#include "model/hardware/check.hpp"

namespace foretrain {

namespace {

template <typename Shape>
void read_shape_keys(Shape& shape, const Field& field, BytesPerSecond card, FigureLog& log) {
  constexpr bool draws = requires { shape.seed; };
  std::vector<const keys::Key*> known;
  for (const keys::Key& key : keys::fabric.keys) {
    const bool of_kind = key.together.empty() || key.together.find(Shape::word) != std::string_view::npos;
    if (of_kind || (draws && key.name == "seed")) known.push_back(&key);
  }
  const MappingReader keys(field, known);
  keys.fill(shape);
  for (const keys::Key* key : known) {
    if (key->usual.starts_with("needed")) static_cast<void>(keys[key->name]);
  }
  /// That of the card where it is not stated.
  [[maybe_unused]] const auto read_bandwidth = [&](std::string_view key, BytesPerSecond& value) {
    if (!keys.has(key)) value = card;
    log.add(keys, {key});
  };
  if constexpr (std::is_same_v<Shape, FatTree>) {
    for (const auto& [key, value] : {std::pair("oversubscription", shape.oversubscription),
                                     std::pair("pod_oversubscription", shape.pod_oversubscription)}) {
      log.add(keys, {key});
      keys.fail_if(value < 1.0, key, "below 1", "1 for a full fabric, 2 where half of it is missing");
    }
  } else if constexpr (std::is_same_v<Shape, Dragonfly>) {
    // As many as nodes: what Kim et al. call balanced, with half as many as routers in a group.
    if (!keys.has("global_links_per_router")) shape.global_links_per_router = shape.nodes_per_router;
    read_bandwidth("local_bandwidth", shape.local_bandwidth);
    read_bandwidth("global_bandwidth", shape.global_bandwidth);
  } else if constexpr (std::is_same_v<Shape, Torus>) {
    read_bandwidth("link_bandwidth", shape.link_bandwidth);
  } else if constexpr (std::is_same_v<Shape, Sites>) {
    log.add(keys, {"distance", "bandwidth"});
    shape.distance_metres = keys["distance"].parse(parse_metres);
  }
  if constexpr (draws) {
    using Routing = typename decltype(shape.routing)::value_type;
    if (const auto routing = keys.find("routing")) shape.routing = routing->template as<Routing>({});
    shape.seed = keys.value_or("seed", 1);
    const Routing by_chance = *value_of<Routing>(std::is_same_v<Shape, FatTree> ? "hash" : "valiant");
    if (shape.routing == by_chance) return;
    keys.refuse({"seed"}, "no route is drawn at random",
                fmt::format("routing: {}, or leave the key out", name(by_chance)));
  }
}

using Shape = decltype(Fabric::shape);

Shape read_kind(const Field& field) {
  const Shape shapes[] = {SingleSwitch{}, FatTree{}, Dragonfly{}, Torus{}, Sites{}};
  const auto words = keys::key_of(keys::fabric, "kind").value.forms().front().words;  // in the same order
  if (!field.is_mapping()) field.fail("no fabric", "a name, or { kind: fat_tree, … }");
  const auto stated = field.find("kind");
  if (!stated) field.fail("no kind", "kind: " + or_list({words.begin(), words.end()}));
  return shapes[stated->parse([&](const std::string& text) { return parse_word(text, words); })];
}

Fabric read_shape(const Field& field, BytesPerSecond card, FigureLog& log) {
  Fabric fabric;
  fabric.shape = read_kind(field);
  std::visit([&](auto& shape) { read_shape_keys(shape, field, card, log); }, fabric.shape);
  if (const auto latency = field.find("switch_latency")) {
    log.add(*latency);
    fabric.switch_latency = latency->as<Seconds>({.zero = Zero::allowed});
  }
  return fabric;
}

/// Position of a dotted path with indices, or of the innermost part of it that was written.
SourcePosition position_of_path(Field field, const std::string& path) {
  for (const std::string& part : split(path, '.')) {
    const std::size_t bracket = part.find('[');
    const auto stated = field.find(part.substr(0, bracket));
    if (!stated) break;
    field = bracket == std::string::npos ? *stated : stated->list()[std::stoul(part.substr(bracket + 1))];
  }
  return field.where();
}

/// `transport: { protocol: tcp, mtu: 1500 B, … }`, or changes of the node's.
Transport read_transport(const Field& field, const std::optional<Transport>& of_node, FigureLog& log) {
  const MappingReader transport = field.mapping();
  const bool changes = of_node && !transport.has("protocol");
  Transport result = changes ? *of_node : Transport{.protocol = transport["protocol"].as<Protocol>()};
  transport.fill(result);
  const bool infiniband = result.protocol == Protocol::infiniband;
  const bool rdma = infiniband || result.protocol == Protocol::roce;
  if (!changes && !transport.has("mtu")) result.mtu = Bytes(rdma ? 4096.0 : 1500.0);
  if (!changes && !transport.has("link_layer"))
    result.link_layer = infiniband ? LinkLayer::infiniband : LinkLayer::ethernet;
  log.add(transport, {"mtu", "message", "window", "flow_limit", "loss"});
  if (const auto problem = check_transport(result)) transport.fail(problem->key, problem->text, problem->expected);
  return result;
}

/// `{ 4: 80 %, 64: 40 % }`
std::map<int, double> read_scaling(const Field& field) {
  if (!field.is_mapping()) field.fail("no mapping", "{ 4: 80 %, 64: 40 % }: number of machines, remaining share");
  std::map<int, double> scaling;
  for (const YamlEntry& entry : field.node().entries) {
    const Field share = field.below(entry);
    const std::int64_t nodes = Field(yaml_scalar(entry.key, entry.where), share.path()).as<std::int64_t>();
    scaling[static_cast<int>(nodes)] = read_share(share, "the remaining share of the efficiency, for example 80 %");
  }
  return scaling;
}

/// The number of one of `count` things called `word`0, `word`1, …
int read_number(const Field& field, const std::string& text, std::string_view word, int count) {
  const auto number = number_behind(text, word);
  field.fail_if(!number, "unknown place \"{}\"",
                "gpu<rank>, node<number>, node<number>/cpu<socket> or host of gpu<rank>", field.text());
  if (*number >= count) {
    field.fail(fmt::format("{} does not exist", text),
               count == 1 ? fmt::format("{}0", word) : fmt::format("{0}0 to {0}{1}", word, count - 1));
  }
  return *number;
}

BackgroundFlow::Place read_place(const Field& field, const Cluster& cluster) {
  using enum BackgroundFlow::Place::Kind;
  constexpr std::string_view host_of = "host of ";
  const std::string& text = field.text();
  if (text.starts_with(host_of)) {
    return {memory_of_gpu, read_number(field, text.substr(host_of.size()), "gpu", cluster.gpus()), 0};
  }
  if (!text.starts_with("node")) return {gpu, read_number(field, text, "gpu", cluster.gpus()), 0};
  const std::size_t slash = text.find('/');
  const int node = read_number(field, text.substr(0, slash), "node", cluster.nodes);
  if (slash == std::string::npos) return {node_memory, node, 0};
  const auto sockets = std::ranges::count(cluster.node_at(node).vertices, VertexKind::cpu, &NodeVertex::kind);
  return {node_memory, node, read_number(field, text.substr(slash + 1), "cpu", static_cast<int>(sockets))};
}

}  // namespace

Fabric read_fabric(const Field& written, BytesPerSecond card, FigureLog& log) {
  const Field field = resolve_preset(written, Catalogue::fabric);
  if (!field.find("sources")) return read_shape(field, card, log);
  FigureLog own("fabric", field);  // a file with sources of its own
  Fabric fabric = read_shape(field, card, own);
  log.append(std::move(own).take());
  return fabric;
}

Network read_network(const Field& field, const Network& base, FigureLog& log) {
  const MappingReader network = field.mapping(keys::network);
  Network result = base;
  log.add(network, {"nics_per_node", "nic_bandwidth", "latency", "oversubscription", "efficiency"});
  network.fill(result);
  network.fill(result.sharing);
  bool infiniband_card = true;
  if (const auto nic = network.find("nic")) {
    const Field cards = hardware_table("cards.yaml", keys::cards_file)["cards"];
    const MappingReader card = named_entry(cards, *nic, "card").mapping();
    result.messages = {};
    if (const auto messages = card.find("messages")) {
      const MappingReader rates = messages->mapping();
      rates.fill(result.messages);
      log.add(rates, {"efficiency", "message_time", "step", "largest"}, read_source(rates["source"]));
    }
    log.add(card["bandwidth"], read_source(card["source"]));
    const auto bandwidth = card["bandwidth"].as<BytesPerSecond>();
    network.fail_if(network.has("nic_bandwidth") && result.nic_bandwidth != bandwidth, "nic_bandwidth",
                    "the card named by nic has a bandwidth already", "one of the two");
    result.nic_bandwidth = bandwidth;
    infiniband_card = card["medium"].as<bool>();
  }
  network.fail_if(result.oversubscription < 1.0, "oversubscription", "below 1",
                  "1 for a full fabric, 2 where half of it is missing");
  if (const auto transport = network.find("transport")) {
    result.transport = read_transport(*transport, base.transport, log);
    if (!network.has("efficiency")) result.efficiency = payload_share(*result.transport);
    transport->fail_if(result.transport->protocol == Protocol::infiniband && !infiniband_card,
                       "InfiniBand's protocol on an Ethernet card",
                       "protocol: roce, tcp or udp; or an InfiniBand card");
  }
  if (const auto scaling = network.find("scaling")) result.scaling = read_scaling(*scaling);
  if (result.efficiency > 1.0)
    network.fail("efficiency", "above 1", "the share of the line rate that is reached, up to 1");
  network.fail_if(result.nics_per_node > 0 && !(result.nic_bandwidth.value() > 0.0), "nic_bandwidth",
                  "NICs without a bandwidth", "nic_bandwidth, for example 200 Gbit/s");
  if (const auto fabric = network.find("fabric")) result.fabric = read_fabric(*fabric, result.nic_bandwidth, log);
  return result;
}

Fault read_fault(const Field& field) {
  const MappingReader fault = field.mapping();
  auto result = fault.filled<Fault>();
  fault.fail_if(result.gpu >= 0 && result.node < 0, "gpu", "a GPU without its node", "also node: NUMBER");
  if (result.gpu >= 0) {
    fault.refuse({"card", "link", "failed", "bandwidth"}, "not allowed with gpu",
                 "one entry of the list per part; for a GPU its speed");
    result.share = read_share(fault["speed"], "of its full speed, for example 80 %");
    return result;
  }
  fault.refuse({"speed"}, "a speed without its GPU", "also gpu: NUMBER");
  field.fail_if(fault.has("card") == fault.has("link"),
                fault.has("card") ? "a card and a link" : "neither a card nor a link", "one of the two");
  fault.fail_if(result.card >= 0 && result.node < 0, "card", "a card without its node", "also node: NUMBER");
  field.fail_if(result.failed == fault.has("bandwidth"), result.failed ? "failed, and a bandwidth" : "states no fault",
                "failed: true, or the remaining bandwidth: 10 Gbit/s, or 50 %");
  if (const auto bandwidth = fault.find("bandwidth")) {
    if (const auto share = percentage(*bandwidth, "more than 0 %, up to 100 %; or failed: true")) {
      result.share = *share;
    } else {
      result.bandwidth = bandwidth->as<BytesPerSecond>();
    }
  }
  return result;
}

Jitter read_jitter(const Field& field) {
  const MappingReader keys = field.mapping();
  auto jitter = keys.filled<Jitter>();
  if (jitter.rack > 0.0) static_cast<void>(keys["nodes_per_rack"]);
  if (const auto throttle = keys.find("throttle")) {
    const MappingReader parts = throttle->mapping();
    jitter.throttled = read_share(parts["share"], "of the time, for example 1 %");
    jitter.throttled_speed = read_share(parts["speed"], "of a GPU's speed, for example 80 %");
  }
  return jitter;
}

void require_possible_network(const Cluster& cluster, const Field& field) {
  const auto problem = check_network(cluster);
  if (!problem) return;
  throw ScenarioError(position_of_path(field, problem->key), join_path(field.path(), problem->key), problem->text,
                      problem->expected);
}

std::vector<BackgroundFlow> read_background(const Field& field, const Cluster& cluster) {
  std::vector<BackgroundFlow> flows;
  for (const Field& entry : field.list()) {
    const MappingReader keys = entry.mapping();
    BackgroundFlow flow;
    flow.from = read_place(keys["from"], cluster);
    flow.to = read_place(keys["to"], cluster);
    flow.rate = keys.value_or("rate", flow.rate);
    flow.where = keys["to"].where();
    if (keys["from"].text() == keys["to"].text()) {
      keys.fail("to", fmt::format("from {0} to {0}", keys["to"].text()), "another place than from");
    }
    flows.push_back(flow);
  }
  return flows;
}

}  // namespace foretrain
