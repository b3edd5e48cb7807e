#include "model/base/text.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/read_once.hpp"

namespace foretrain {

namespace {

/// `nccl:` of a cluster or of a node, the version of the collective library: "2.29", "2.21.5" or "none". A patch
/// changes no choice.
NcclVersion read_nccl(const Field& field) {
  const std::string& written = field.text();
  if (written == "none") return no_nccl;
  std::string numbers = written;
  std::ranges::replace(numbers, '-', '.');  // 2.21.5-1, as packages are called
  const std::vector<std::string> parts = split(numbers, '.');
  const bool plain = std::ranges::all_of(parts, [](const auto& part) { return number_behind(part, "").has_value(); });
  const auto minor = plain && parts.size() > 1 && parts[0] == "2" ? number_behind(parts[1], "") : std::nullopt;
  if (!minor || *minor > 99) {
    field.fail("\"" + written + "\" is no version of NCCL 2",
               "2.29, the version that the library prints; or none, where collectives are plain copies");
  }
  return {2, *minor};
}

Node read_node_document(const Field& field) {
  const MappingReader node = field.mapping(keys::node);
  if (node.value_or<std::string>("kind", "node") != "node")
    node.fail("kind", "this file describes no node", "kind: node");

  Node result;
  result.name = "node";
  node.fill(result);
  FigureLog log(result.name, field);
  result.gpu = read_gpu(node["gpu"]);
  log.append(result.gpu.constants);
  result.cpu = read_cpu(node["cpu"], log);
  if (const auto nccl = node.find("nccl")) result.nccl = read_nccl(*nccl);
  const std::optional<Field> link_types = node.find("link_types");
  const std::vector<Field> links = read_wiring(node["wiring"], link_types, result, log);
  if (const auto nics = node.find("nics")) read_nic_attachment(*nics, link_types, result, log);
  check_wiring(result, node["wiring"], links);
  if (const auto network = node.find("network")) result.network = read_network(*network, {}, log);
  if (const auto storage = node.find("storage")) result.storage = read_storage(*storage, log);
  result.constants = std::move(log).take();
  for (const std::string& what : assumed_in(node)) result.assumed.push_back(result.name + ": " + what);
  return result;
}

/// `node`, `nodes`, `gpus_per_node` of a cluster or of one of its groups, and its network over `general`, the
/// cluster's.
NodeGroup read_group(const MappingReader& keys, const std::optional<Field>& general, const Field& cluster) {
  NodeGroup group;
  group.node = read_node(keys["node"]);
  group.gpus_per_node = group.node.gpus;
  keys.fill(group);
  keys.fail_if(group.gpus_per_node > group.node.gpus, "gpus_per_node", "{0} GPUs, but {1} has {2}", "at most {2}",
               group.gpus_per_node, group.node.name, group.node.gpus);
  group.network = group.node.network;
  for (const std::optional<Field>& network : {general, keys.find("network")}) {
    if (!network) continue;
    FigureLog log("cluster", cluster);
    group.network = read_network(*network, group.network, log);
    for (const Constant& replaced : std::move(log).take()) group.node.constants.push_back(replaced);
  }
  return group;
}

/// `groups:`, for all of which the cluster's `network:` holds, or the cluster itself as one.
std::vector<NodeGroup> read_groups(const MappingReader& cluster) {
  const auto stated = cluster.find("groups");
  std::vector<MappingReader> entries;
  if (stated) {
    cluster.refuse({"node", "nodes", "gpus_per_node"}, "not allowed with groups", "this key inside of each group");
    for (const Field& entry : stated->list()) entries.push_back(entry.mapping());
    if (entries.empty()) cluster.fail("groups", "no groups", "at least one: [ { node: dgx-h100, nodes: 4 } ]");
  } else {
    entries.push_back(cluster);
  }
  std::vector<NodeGroup> groups;
  std::int64_t nodes = 0, gpus = 0;
  for (const MappingReader& keys : entries) {
    const auto network = stated ? keys.find("network") : std::nullopt;
    for (const char* key : {"fabric", "fairness", "queue_pairs"}) {
      const auto own = network && network->is_mapping() ? network->find(key) : std::nullopt;
      if (!own) continue;
      own->fail(fmt::format("a {} of its own", key),
                fmt::format("cluster.network.{}: one fabric joins all nodes", key));
    }
    groups.push_back(read_group(keys, stated ? cluster.find("network") : std::nullopt, cluster.field()));
    nodes += groups.back().nodes;
    gpus += std::int64_t{groups.back().nodes} * groups.back().gpus_per_node;
  }
  cluster.fail_if(nodes > most_nodes || gpus > most_gpus, stated ? "groups" : "nodes", "{0} nodes with {1} GPUs",
                  "at most {2} nodes and {3} GPUs", nodes, gpus, most_nodes, most_gpus);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].network.fabric = groups.front().network.fabric;
    if (nodes < 2 || groups[i].network.nics_per_node > 0) continue;
    entries[i].fail("nodes", fmt::format("{} nodes without a network", nodes),
                    "network: { nics_per_node: …, nic_bandwidth: …, latency: … }, or one node");
  }
  return groups;
}

}  // namespace

Node read_node(const Field& written) {
  const auto read = [&](const Field&) { return read_node_document(resolve_preset(written, Catalogue::node)); };
  if (!written.is_scalar()) return read(written);
  // Of the catalogue, of which nothing is changed: wherever it is named.
  return read_once(Field(yaml_scalar(catalogue_file(Catalogue::node, written).string(), {}), written.path()), read);
}

Cluster read_cluster(const Field& field) {
  const MappingReader cluster = field.mapping(keys::cluster);
  std::vector<NodeGroup> groups = read_groups(cluster);
  Cluster result;
  if (groups.size() > 1) result.groups = groups;
  result.nodes = 0;
  for (const NodeGroup& group : groups) result.nodes += group.nodes;
  result.node = std::move(groups.front().node);
  result.gpus_per_node = groups.front().gpus_per_node;
  result.network = std::move(groups.front().network);
  // NCCL is for GPUs; between processors, and on machines that say so, collectives are plain copies.
  if (result.node.gpu.processor) result.nccl = no_nccl;
  if (result.node.nccl) result.nccl = *result.node.nccl;
  if (const auto nccl = cluster.find("nccl")) result.nccl = read_nccl(*nccl);
  for (const Field& fault : cluster.list("faults")) result.faults.push_back(read_fault(fault));
  if (const auto jitter = cluster.find("jitter")) result.jitter = read_jitter(*jitter);
  require_possible_network(result, field);
  if (const auto price = cluster.find("price")) read_price(*price, field, result);
  if (const auto failures = cluster.find("failures")) result.failures = read_failures(*failures);
  if (const auto energy = cluster.find("energy")) result.energy = read_energy(*energy, field, result);
  return result;
}

}  // namespace foretrain
