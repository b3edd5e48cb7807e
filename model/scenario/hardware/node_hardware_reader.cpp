#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "model/base/hash.hpp"
#include "model/base/seen_files.hpp"
#include "model/base/text.hpp"
#include "model/hardware/check.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"

namespace foretrain {

namespace {

constexpr std::int64_t most_gpus_per_node = 1024, most_gpus = 1'048'576;

/// Complains about what only the whole node shows, at the key to which it belongs.
void require_possible(const Node& result, const MappingReader& node) {
  for (const HardwareProblem& problem : check_node(result)) {
    const std::string section = split(problem.key, '.').front();
    throw ScenarioError(
        node.where(section), node.path(problem.key), problem.text,
        section == "wiring" ? "links by which every GPU and CPU reaches all others" : "a node that can be built");
  }
}

/// The whole number at the front of a text, and what follows it; -1 where there is none.
int take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// `nccl:` of a cluster or of a node, the version of the collective library: "2.29", "2.21.5" or "none".
NcclVersion read_nccl(const Field& field) {
  const std::string& written = field.text();
  if (written == "none") return no_nccl;
  std::string_view rest = written;
  NcclVersion version;
  version.major = take_number(rest);
  if (rest.starts_with('.')) rest.remove_prefix(1);
  version.minor = take_number(rest);
  // A patch changes no choice.
  while (rest.size() > 1 && (rest[0] == '.' || rest[0] == '-')) {
    rest.remove_prefix(1);
    if (take_number(rest) < 0) break;
  }
  if (version.major != 2 || version.minor < 0 || version.minor > 99 || !rest.empty()) {
    field.fail("\"" + written + "\" is no version of NCCL 2",
               "2.29, the version that the library prints; or none, where collectives are plain copies");
  }
  return version;
}

Node read_node_document(const YamlNode& document, const Field& written) {
  const Field field(document, written.path());
  const MappingReader node = field.mapping(keys::node);
  if (node.text_or("kind", "node") != "node") node.fail("kind", "this file describes no node", "kind: node");

  Node result;
  result.name = node.text_or("name", "node");
  result.description = node.text_or("description", "");
  FigureLog log(result.name, field);
  result.gpu = read_gpu(node["gpu"]);
  log.append(result.gpu.constants);
  result.gpus = static_cast<int>(node["gpus"].integer({1, most_gpus_per_node}));
  result.cpu = read_cpu(node["cpu"], log);
  if (node.has("peer_to_peer")) result.peer_to_peer = node.flag_or("peer_to_peer", true);
  if (const auto nccl = node.find("nccl")) result.nccl = read_nccl(*nccl);
  const std::optional<Field> link_types = node.find("link_types");
  const std::vector<Field> links = read_wiring(node["wiring"], link_types, result, log);
  if (const auto nics = node.find("nics")) read_nic_attachment(*nics, link_types, result, log);
  check_wiring(result, links);
  if (const auto network = node.find("network")) result.network = read_network(*network, {}, log);
  if (const auto storage = node.find("storage")) result.storage = read_storage(*storage, log);
  result.constants = std::move(log).take();
  for (const std::string& what : assumed_in(node)) result.assumed.push_back(result.name + ": " + what);
  require_possible(result, node);
  return result;
}

/// A node of the catalogue of which nothing is changed. What it names is found by what its files say and by where the
/// catalogue lies.
struct NodeKey {
  using Value = const MadeOfFiles<Node>;
  std::string file, key, catalogue;

  bool operator==(const NodeKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(file, key); }
  [[nodiscard]] std::size_t bytes(const MadeOfFiles<Node>&) const { return 50'000; }
};

}  // namespace

Node read_node(const Field& written) {
  if (!written.is_scalar()) return read_node_document(resolve_preset(written, CatalogueSection::node), written);
  const std::string file = catalogue_file(CatalogueSection::node, written).string();
  return made_of_files(NodeKey{file, written.path(), data_directory().string()},
                       [&] { return read_node_document(resolve_preset(written, CatalogueSection::node), written); })
      ->value;
}

namespace {

/// `node`, `nodes`, `gpus_per_node` of a cluster or of one of its groups, and its network over `general`, the
/// cluster's.
NodeGroup read_group(const MappingReader& keys, const std::optional<Field>& general, const Field& cluster) {
  NodeGroup group;
  group.node = read_node(keys["node"]);
  group.nodes = keys.int_or("nodes", 1, {1, most_nodes});
  group.gpus_per_node = keys.int_or("gpus_per_node", group.node.gpus, {1, most_gpus_per_node});
  if (group.gpus_per_node > group.node.gpus) {
    keys.fail("gpus_per_node",
              fmt::format("{} GPUs, but {} has {}", group.gpus_per_node, group.node.name, group.node.gpus),
              fmt::format("at most {}", group.node.gpus));
  }
  group.network = group.node.network;
  for (const std::optional<Field>& network : {general, keys.find("network")}) {
    if (!network) continue;
    FigureLog log("cluster", cluster);
    group.network = read_network(*network, group.network, log);
    const std::vector<Constant> replaced = std::move(log).take();
    group.node.constants.insert(group.node.constants.end(), replaced.begin(), replaced.end());
  }
  return group;
}

void require_network(const NodeGroup& group, int nodes, const MappingReader& keys) {
  if (nodes < 2 || group.network.nics_per_node > 0) return;
  keys.fail("nodes", fmt::format("{} nodes without a network", nodes),
            "network: { nics_per_node: …, nic_bandwidth: …, latency: … }, or one node");
}

void require_possible_size(std::span<const NodeGroup> groups, const Field& nodes) {
  std::int64_t all_nodes = 0, all_gpus = 0;
  for (const NodeGroup& group : groups) {
    all_nodes += group.nodes;
    all_gpus += std::int64_t{group.nodes} * group.gpus_per_node;
  }
  if (all_nodes <= most_nodes && all_gpus <= most_gpus) return;
  nodes.fail(fmt::format("{} nodes with {} GPUs", all_nodes, all_gpus),
             fmt::format("at most {} nodes and {} GPUs", most_nodes, most_gpus));
}

/// `groups:`, and the cluster's `network:`, which holds for all of them.
std::vector<NodeGroup> read_groups(const MappingReader& cluster) {
  for (const char* key : {"node", "nodes", "gpus_per_node"}) {
    if (cluster.has(key)) cluster.fail(key, fmt::format("{} beside groups", key), "this key inside of each group");
  }
  std::vector<NodeGroup> groups;
  const std::vector<Field> list = cluster["groups"].list();
  if (list.empty()) cluster.fail("groups", "no groups", "at least one: [ { node: dgx-h100, nodes: 4 } ]");
  for (const Field& entry : list) {
    const MappingReader keys = entry.mapping(keys::group);
    if (const auto network = keys.find("network"); network && network->is_mapping()) {
      for (const char* key : {"fabric", "fairness", "queue_pairs"}) {
        const auto own = network->find(key);
        if (!own) continue;
        own->fail(fmt::format("a {} of its own", key),
                  fmt::format("cluster.network.{}: one fabric joins all nodes", key));
      }
    }
    groups.push_back(read_group(keys, cluster.find("network"), cluster.field()));
  }
  require_possible_size(groups, cluster["groups"]);
  int nodes = 0;
  for (const NodeGroup& group : groups) nodes += group.nodes;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].network.fabric = groups.front().network.fabric;
    require_network(groups[i], nodes, list[i].mapping(keys::group));
  }
  return groups;
}

}  // namespace

Cluster read_cluster(const Field& field) {
  const MappingReader cluster = field.mapping(keys::cluster);
  Cluster result;
  NodeGroup first;
  if (cluster.has("groups")) {
    result.groups = read_groups(cluster);
    first = result.groups.front();
    first.nodes = 0;
    for (const NodeGroup& group : result.groups) first.nodes += group.nodes;
  } else {
    first = read_group(cluster, std::nullopt, field);
    if (const auto nodes = cluster.find("nodes")) require_possible_size({&first, 1}, *nodes);
    require_network(first, first.nodes, cluster);
  }
  result.node = std::move(first.node);
  result.nodes = first.nodes;
  result.gpus_per_node = first.gpus_per_node;
  result.network = std::move(first.network);
  if (result.groups.size() == 1) result.groups.clear();
  // NCCL is for GPUs; between processors, and on machines that say so, collectives are plain copies.
  if (result.node.gpu.processor) result.nccl = no_nccl;
  if (result.node.nccl) result.nccl = *result.node.nccl;
  if (const auto nccl = cluster.find("nccl")) result.nccl = read_nccl(*nccl);
  if (const auto faults = cluster.find("faults")) result.faults = read_faults(*faults);
  if (const auto jitter = cluster.find("jitter")) result.jitter = read_jitter(*jitter);
  require_possible_network(result, field);
  if (const auto price = cluster.find("price")) read_price(*price, field, result);
  if (const auto failures = cluster.find("failures")) result.failures = read_failures(*failures);
  if (const auto energy = cluster.find("energy")) result.energy = read_energy(*energy, field, result);
  return result;
}

}  // namespace foretrain
