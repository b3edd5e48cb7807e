#include <fmt/format.h>

#include <utility>

#include "model/base/text.hpp"
#include "model/hardware/check.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware_reader.hpp"
#include "model/scenario/network_reader.hpp"
#include "model/scenario/storage_reader.hpp"
#include "model/scenario/wiring_reader.hpp"

namespace foretrain {

namespace {

constexpr std::int64_t most_gpus_per_node = 1024;

/// Complains about what only the whole node shows, at the key to which it belongs.
void require_possible(const Node& result, const MappingReader& node) {
  for (const HardwareProblem& problem : check_node(result)) {
    const std::string section = split(problem.key, '.').front();
    throw ScenarioError(
        node.where(section), node.path(problem.key), problem.text,
        section == "wiring" ? "links by which every GPU and CPU reaches all others" : "a node that can be built");
  }
}

}  // namespace

Node read_node(const Field& written) {
  const YamlNode document = resolve_preset(written, CatalogueSection::node);
  const Field field(document, written.path());
  const MappingReader node = field.mapping({"kind", "name", "description", "gpu", "gpus", "cpu", "peer_to_peer",
                                            "link_types", "wiring", "nics", "network", "storage", "sources"});
  if (node.text_or("kind", "node") != "node") node.fail("kind", "this file describes no node", "kind: node");

  Node result;
  result.name = node.text_or("name", "node");
  result.description = node.text_or("description", "");
  FigureLog log(result.name, field);
  result.gpu = read_gpu(node["gpu"]);
  log.append(result.gpu.constants);
  result.gpus = static_cast<int>(node["gpus"].integer({1, most_gpus_per_node}));
  result.cpu = read_cpu(node["cpu"], log);
  result.peer_to_peer = node.flag_or("peer_to_peer", true);
  const std::optional<Field> link_types = node.find("link_types");
  read_wiring(node["wiring"], link_types, result, log);
  if (const auto nics = node.find("nics")) read_nic_attachment(*nics, link_types, result, log);
  if (const auto network = node.find("network")) result.network = read_network(*network, {}, log);
  if (const auto storage = node.find("storage")) result.storage = read_storage(*storage, log);
  result.constants = std::move(log).take();
  require_possible(result, node);
  return result;
}

Cluster read_cluster(const Field& field) {
  const MappingReader cluster =
      field.mapping({"node", "nodes", "gpus_per_node", "network", "faults", "jitter", "price"});
  Cluster result;
  result.node = read_node(cluster["node"]);
  result.nodes = cluster.int_or("nodes", 1, {1, 1'000'000});
  result.gpus_per_node = cluster.int_or("gpus_per_node", result.node.gpus, {1, most_gpus_per_node});
  if (result.gpus_per_node > result.node.gpus) {
    cluster.fail("gpus_per_node",
                 fmt::format("{} GPUs, but {} has {}", result.gpus_per_node, result.node.name, result.node.gpus),
                 fmt::format("at most {}", result.node.gpus));
  }
  result.network = result.node.network;
  if (const auto network = cluster.find("network")) {
    FigureLog log("cluster", field);
    result.network = read_network(*network, result.node.network, log);
    const std::vector<Constant> replaced = std::move(log).take();
    result.node.constants.insert(result.node.constants.end(), replaced.begin(), replaced.end());
  }
  if (result.nodes > 1 && result.network.nics_per_node < 1) {
    cluster.fail("nodes", fmt::format("{} nodes without a network", result.nodes),
                 "network: { nics_per_node: …, nic_bandwidth: …, latency: … }, or one node");
  }
  if (const auto faults = cluster.find("faults")) result.faults = read_faults(*faults);
  if (const auto jitter = cluster.find("jitter")) result.jitter = read_jitter(*jitter);
  require_possible_network(result, field);
  if (const auto price = cluster.find("price")) {
    result.usd_per_gpu_hour = price->parse([](const std::string& text) { return parse_usd_per_gpu_hour(text); });
  }
  return result;
}

}  // namespace foretrain
