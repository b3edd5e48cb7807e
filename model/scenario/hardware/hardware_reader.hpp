// Hardware files (and inline mappings of the same keys) to the values of model/hardware/cluster.hpp: what the readers
// of this room offer each other and the rooms above.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/collectives/contention.hpp"
#include "model/hardware/cluster.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/figures.hpp"
#include "model/scenario/yaml_reader.hpp"
#include "model/workload/recovery.hpp"

namespace foretrain {

/// Five times the largest machines of 2025, of which a prediction still takes seconds.
inline constexpr std::int64_t most_nodes = 131'072, most_gpus = 1'048'576;

/// A GPU: a catalogue name, a path, a mapping of a GPU file's keys, or { preset: NAME, … } with some of them replaced.
Gpu read_gpu(const Field& field);

/// `cpu:` of a node. Its `hierarchy` is a name of scenarios/hardware/processors, a mapping of the keys of such a
/// file, or { preset: NAME, … } with some of them replaced.
Cpu read_cpu(const Field& field, FigureLog& log);

/// The files of scenarios/hardware/processors: a microarchitecture and the processors that have it, as
/// "GenuineIntel 6 143" (vendor, family, model of /proc/cpuinfo).
struct KnownProcessors {
  std::string hierarchy;
  std::vector<std::string> processors;
  BytesPerSecond socket_bandwidth;  ///< memory bandwidth, where a machine of this kind does not tell
  std::string slot = {};            ///< the widest PCIe link that it has; empty: not known
};
std::vector<KnownProcessors> known_processors();

/// A node, in the same four ways. Throws ScenarioError for anything missing, unknown or impossible: no GPUs, wiring to
/// vertices that cannot exist, parts that no link reaches.
Node read_node(const Field& field);

/// `cluster:` of a scenario.
Cluster read_cluster(const Field& field);

/// The tree of a catalogue entry behind a name, a path or a mapping with `preset`; a mapping without is taken as it is.
YamlNode resolve_preset(const Field& field, Catalogue section);

/// Fills vertices, link_types and links of `node`, whose GPU and socket counts are set. Link types are looked up in the
/// node's own `link_types` (may be absent), then in scenarios/hardware/links.yaml; those that are used are noted in
/// `log`. Returns the entry of each link, for complaints. Throws ScenarioError for unknown vertices and link types, and
/// links from a vertex to itself.
std::vector<Field> read_wiring(const Field& wiring, const std::optional<Field>& own_link_types, Node& node,
                               FigureLog& log);
/// Vertices and link of `nics: { attached_to: [ … ], link: … }`.
void read_nic_attachment(const Field& nics, const std::optional<Field>& own_link_types, Node& node, FigureLog& log);
/// What wiring cannot be, told at the line that says it: links of a kind that does not fit their ends, rings of PCIe,
/// parts that no link reaches. `links`: the entry of `wiring` of each link.
void check_wiring(const Node& node, const Field& wiring, const std::vector<Field>& links);

/// `network:` with every key optional: values given replace those of `base`. Replaced figures are noted in `log`. Where
/// a transport is stated and no efficiency, the efficiency is the transport's payload share.
Network read_network(const Field& field, const Network& base, FigureLog& log);
/// `fabric:`: a catalogue name, a path, a mapping with a `kind`, or { preset: NAME, … }. Links whose bandwidth is not
/// stated are as fast as `card`.
Fabric read_fabric(const Field& field, BytesPerSecond card, FigureLog& log);
/// `faults:`, a list of cards and links that are slower than their like, or broken.
std::vector<Fault> read_faults(const Field& field);
/// `jitter: { compute: 2 %, network: 5 %, seed: 1 }`.
Jitter read_jitter(const Field& field);
/// Throws ScenarioError, at the key below `cluster` that is to blame, for what check_network() finds.
void require_possible_network(const Cluster& cluster, const Field& field);

/// 2.5 USD/GPU/hour, 98 USD/node/hour, or a way to buy that scenarios/hardware/prices.yaml knows of the cluster's
/// machines: on_demand; of others: { of: p5.48xlarge, purchase: on_demand }.
void read_price(const Field& field, const Field& cluster_field, Cluster& cluster);
/// A grid of scenarios/hardware/energy.yaml, or { grid: france | 56 g/kWh, pue: 1.2, machine: 10.2 kW }.
Energy read_energy(const Field& field, const Field& cluster_field, const Cluster& cluster);

/// A name of scenarios/hardware/failures.yaml, or { preset: NAME, gpu: 50000 h, node: 1e-5 /hour, switches: 4,
/// stragglers: { gpu: 100000 h, speed: 80 %, noticed: 1 h }, seed: 1 }.
Failures read_failures(const Field& field);
/// { heartbeat: 5 s, missed: 3, start: 60 s, initialise: 20 s, spares: 2, repair: 24 h, servers: replicated }, each as
/// failures.yaml has it where it is not stated.
Recovery read_recovery(const std::optional<Field>& field, const Cluster& cluster);

/// The top-level key `background`, traffic of others: a list of { from, to, rate }, e.g. { from: node0, to: node3,
/// rate: 20 Gbit/s }. Places:
///   gpu<r>            the memory of the GPU with global rank r (counted node by node)
///   node<n>           host memory of node n, that of its first socket; node<n>/cpu<s>: of socket s
///   host of gpu<r>    host memory of the socket that is nearest to a GPU
/// Without `rate` a flow takes its fair share. Throws ScenarioError for places that the cluster does not have.
std::vector<BackgroundFlow> read_background(const Field& field, const Cluster& cluster);

/// `storage:` of a node or a loader: a name of scenarios/hardware/storage.yaml, a mapping of an entry's keys, or
/// { preset: NAME, … } with some of them replaced. Throws ScenarioError for what is unknown, missing or impossible: an
/// inner zone faster than the outer one, a seek to the next track longer than the average one.
Storage read_storage(const Field& field, FigureLog& log);
/// The same for storage that belongs to no node: Storage::constants holds its figures.
Storage read_storage(const Field& field);

/// All of scenarios/hardware/FILE, a table whose entries have names of their own: cards.yaml, storage.yaml, ….
const YamlNode& hardware_table(std::string_view file);
/// The entry of a table that has the name; complains at the name with the nearest known one.
const YamlNode& named_entry(const YamlNode& table, const Field& name, std::string_view what);
/// What a field says that is an entry's name, { preset: NAME, … } with keys that take the place of the entry's, or all
/// keys itself.
YamlNode entry_or_changes(const YamlNode& table, const Field& field, std::string_view what);

inline constexpr const char* any_share = "more than 0 %, up to 100 %";
/// "80 %" → 0.8; complains about another percentage than from above 0 % to 100 %. Nothing for another unit.
std::optional<double> percentage(const Field& field, std::string_view expected = any_share);
/// The same where another unit is wrong.
double read_share(const Field& field, std::string_view expected = any_share);

}  // namespace foretrain
